package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const criTime = "2006-01-02T15:04:05.000000000Z07:00"

// container is one local process with a log.
type container struct {
	log string
}

func (c *container) start(argv []string) error {
	file, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	command := exec.Command(argv[0], argv[1:]...)
	command.Stderr = os.Stderr
	// The kernel ties it to the thread that started it, which may not end before we do.
	runtime.LockOSThread()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	go keep(output, file)
	return nil
}

// keep writes the log in the CRI format; lines that have come by then go out in one write.
func keep(output io.Reader, file *os.File) {
	reader, writer := bufio.NewReaderSize(output, 64<<10), bufio.NewWriterSize(file, 64<<10)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return
		}
		writer.WriteString(time.Now().UTC().Format(criTime))
		writer.WriteString(" stdout F ")
		writer.Write(line)
		if reader.Buffered() == 0 {
			writer.Flush()
		}
	}
}

// running answers the one question that the log reader has for a container runtime.
type running struct {
	internalapi.RuntimeService
}

func (running) ContainerStatus(context.Context, string, bool) (
	*runtimeapi.ContainerStatusResponse, error) {
	return &runtimeapi.ContainerStatusResponse{
		Status: &runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}, nil
}
