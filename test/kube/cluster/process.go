package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a program that runs in the background with its output in a file.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // once done is closed
}

// start starts a program. It dies with the test binary, whatever ends that.
func start(t testing.TB, log, program string, args ...string) *process {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := &process{cmd: exec.Command(program, args...), log: log, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// ended returns why the program is not running any more, nil while it does.
func (p *process) ended() error {
	select {
	case <-p.done:
		return errors.Join(errors.New("it has ended"), p.err)
	default:
		return nil
	}
}

// kill ends the program at once. Its data are of no use afterwards.
func (p *process) kill() {
	if p == nil || p.ended() != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop ends the program, gently first.
func (p *process) stop() {
	if p == nil || p.ended() != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// tail returns the end of the program's output.
func (p *process) tail() string {
	if p == nil {
		return ""
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = slices.DeleteFunc(lines, func(s string) bool { return strings.Contains(s, "controller is disabled") })
	return fmt.Sprintf("%s:\n%s", p.log, strings.Join(lines[max(0, len(lines)-60):], "\n"))
}
