package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	stdoutChannel = 1
	errorChannel  = 3
)

// result is what one stream did, in seconds since its request.
type result struct {
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	Bytes int64   `json:"bytes"`
}

type client struct {
	tls   *tls.Config
	url   string
	flags *flag.FlagSet
}

func newClient(name string) *client {
	c := &client{flags: flag.NewFlagSet(name, flag.ExitOnError), tls: &tls.Config{}}
	c.flags.StringVar(&c.url, "url", "", "what to ask the API server for")
	c.flags.Func("ca", "the API server's CA", func(file string) error {
		pem, err := os.ReadFile(file)
		c.tls.RootCAs = x509.NewCertPool()
		c.tls.RootCAs.AppendCertsFromPEM(pem)
		return err
	})
	c.flags.Func("pair", "CERTIFICATE,KEY of the client", func(pair string) error {
		certificate, key, _ := strings.Cut(pair, ",")
		loaded, err := tls.LoadX509KeyPair(certificate, key)
		c.tls.Certificates = []tls.Certificate{loaded}
		return err
	})
	return c
}

// measureExecs runs a command, again and again or all at once, and prints a list of results.
func measureExecs(arguments []string) error {
	c := newClient("exec")
	times := c.flags.Int("times", 1, "how often")
	crowd := c.flags.Bool("crowd", false, "all at once; they read on when all have begun")
	if err := c.flags.Parse(arguments); err != nil {
		return err
	}
	results, failures := make([]result, *times), make([]error, *times)
	var begun, ended sync.WaitGroup
	begun.Add(*times)
	for i := range *times {
		run := func() {
			results[i], failures[i] = c.exec(func() {
				begun.Done()
				if *crowd {
					begun.Wait()
				}
			})
		}
		if *crowd {
			ended.Go(run)
		} else {
			run()
		}
	}
	ended.Wait()
	for _, failure := range failures {
		if failure != nil {
			return failure
		}
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func (c *client) exec(begun func()) (found result, err error) {
	var once sync.Once
	defer once.Do(begun)
	dialer := websocket.Dialer{
		TLSClientConfig: c.tls,
		Subprotocols:    []string{"v5.channel.k8s.io"},
		ReadBufferSize:  64 << 10,
	}
	start := time.Now()
	connection, _, err := dialer.Dial("wss"+strings.TrimPrefix(c.url, "https"), nil)
	if err != nil {
		return found, err
	}
	defer connection.Close()
	scratch := make([]byte, 64<<10)
	for {
		_, message, err := connection.NextReader()
		if err != nil {
			return found, fmt.Errorf("after %d bytes: %w", found.Bytes, err)
		}
		n, err := message.Read(scratch[:1])
		if err != nil || n == 0 {
			return found, fmt.Errorf("an empty message: %w", err)
		}
		if scratch[0] == errorChannel {
			n, _ := message.Read(scratch)
			if status := string(scratch[:n]); !strings.Contains(status, `"Success"`) {
				return found, fmt.Errorf("the command ended with %s", status)
			}
			return found, nil
		}
		for {
			n, err := message.Read(scratch)
			if n > 0 && found.Bytes == 0 {
				found.First = time.Since(start).Seconds()
				once.Do(begun)
			}
			found.Bytes += int64(n)
			if err != nil {
				break
			}
		}
		found.Last = time.Since(start).Seconds()
	}
}

// measureLogs follows a log: it says "ready" once it has the old lines, and prints a result for the
// new ones, of which the last one is END.
func measureLogs(arguments []string) error {
	c := newClient("logs")
	if err := c.flags.Parse(arguments); err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: c.tls, ForceAttemptHTTP2: true}
	response, err := (&http.Client{Transport: transport}).Get(c.url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	chunk, tail := make([]byte, 64<<10), ""
	if _, err := response.Body.Read(chunk); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s (%v)", response.Status, chunk, err)
	}
	fmt.Println("ready")
	var found result
	var start time.Time
	for !strings.HasSuffix(tail, "\nEND\n") {
		n, err := response.Body.Read(chunk)
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", found.Bytes, err)
		}
		if found.Bytes == 0 {
			start = time.Now()
		}
		found.Bytes += int64(n)
		tail = (tail + string(chunk[max(0, n-5):n]))
		tail = tail[max(0, len(tail)-5):]
	}
	found.Last = time.Since(start).Seconds()
	return json.NewEncoder(os.Stdout).Encode(found)
}

// serveZeros is what a port is forwarded to: so many bytes for every connection.
func serveZeros(arguments []string) error {
	flags := flag.NewFlagSet("zeros", flag.ExitOnError)
	listen := flags.String("listen", "", "address")
	size := flags.Int64("bytes", 0, "how many")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	zeros := make([]byte, 64<<10)
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer connection.Close()
			for left := *size; left > 0; {
				n, err := connection.Write(zeros[:min(left, int64(len(zeros)))])
				if err != nil {
					return
				}
				left -= int64(n)
			}
		}()
	}
}
