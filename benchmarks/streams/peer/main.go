// A node's streaming server made of the modules that a kubelet and its container runtime are made
// of, with local processes for containers: the peer of `python -m benchmarks.streams`.
//
// exec and port-forward are served by k8s.io/cri-streaming, container logs by the reader of
// k8s.io/cri-client in the CRI format. On a real node a kubelet passes exec and port-forward on to
// its runtime's streaming server, over one more connection; here the API server talks to the
// latter directly, and no request is authorized beyond its client certificate. Both are to the
// peer's advantage.
//
// The measuring clients are parts of this program too, so that both nodes are read by the same
// cheap reader.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"

	"k8s.io/cri-client/pkg/logs"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("which part: serve, zeros, exec or logs?")
	}
	part, rest := os.Args[1], os.Args[2:]
	var err error
	switch part {
	case "serve":
		err = serve(rest)
	case "zeros":
		err = serveZeros(rest)
	case "exec":
		err = measureExecs(rest)
	case "logs":
		err = measureLogs(rest)
	default:
		err = errors.New("no such part: " + part)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serve(arguments []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	listen := flags.String("listen", "", "address of the kubelet port")
	certificate := flags.String("cert", "", "serving certificate")
	key := flags.String("key", "", "its key")
	clients := flags.String("client-ca", "", "who signs client certificates")
	logFile := flags.String("log-file", "", "the container's log, in the CRI format")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	container := &container{log: *logFile}
	if err := container.start(flags.Args()); err != nil {
		return err
	}
	server, err := newServer(*listen, *clients, container)
	if err != nil {
		return err
	}
	return server.ListenAndServeTLS(*certificate, *key)
}

func newServer(listen, clients string, c *container) (*http.Server, error) {
	pem, err := os.ReadFile(clients)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in " + clients)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("/exec/{namespace}/{pod}/{container}", c.serveExec)
	routes.HandleFunc("/portForward/{namespace}/{pod}", c.servePortForward)
	routes.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", c.serveLogs)
	return &http.Server{
		Addr:    listen,
		Handler: routes,
		TLSConfig: &tls.Config{
			ClientAuth: tls.RequireAndVerifyClientCert,
			ClientCAs:  pool,
			MinVersion: tls.VersionTLS12,
		},
	}, nil
}

func (c *container) serveExec(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, c, r.PathValue("pod"), "", r.PathValue("container"),
		r.URL.Query()["command"], options, idleTimeout, creationTimeout,
		remotecommand.SupportedStreamingProtocols)
}

// ExecInContainer runs a command as a local process. Terminals are not measured and not offered.
func (c *container) ExecInContainer(ctx context.Context, name, uid, container string, argv []string,
	in io.Reader, out, err io.WriteCloser, tty bool, _ <-chan remotecommand.TerminalSize,
	_ time.Duration) error {
	if tty {
		return errors.New("no terminals here")
	}
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if in != nil {
		command.Stdin = in
	}
	if out != nil {
		command.Stdout = out
	}
	if err != nil {
		command.Stderr = err
	}
	failure := command.Run()
	var exit *exec.ExitError
	if errors.As(failure, &exit) {
		return utilexec.CodeExitError{Err: failure, Code: exit.ExitCode()}
	}
	return failure
}

func (c *container) servePortForward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, c, r.PathValue("pod"), "", options, idleTimeout,
		creationTimeout, portforward.SupportedProtocols)
}

// PortForward copies between the client and a port of this machine, as container runtimes do.
func (c *container) PortForward(ctx context.Context, _, _ string, port int32,
	stream io.ReadWriteCloser) error {
	defer stream.Close()
	far, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("failed to connect to localhost:%d: %w", port, err)
	}
	defer far.Close()
	go func() {
		_, _ = io.Copy(far, stream)
		_ = far.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, far)
	return err
}

func (c *container) serveLogs(w http.ResponseWriter, r *http.Request) {
	options := &logs.LogOptions{}
	options.Follow, _ = strconv.ParseBool(r.URL.Query().Get("follow"))
	options.Timestamp, _ = strconv.ParseBool(r.URL.Query().Get("timestamps"))
	if text := r.URL.Query().Get("tailLines"); text != "" {
		tail, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		options.TailLines = &tail
	}
	// A kubelet too flushes every line.
	out := &flushing{w, http.NewResponseController(w)}
	if err := logs.ReadLogs(r.Context(), c.log, "id", options, running{}, out, out); err != nil {
		log.Print(err)
	}
}

type flushing struct {
	io.Writer
	control *http.ResponseController
}

func (f *flushing) Write(chunk []byte) (int, error) {
	n, err := f.Writer.Write(chunk)
	if err != nil {
		return n, err
	}
	return n, f.control.Flush()
}
