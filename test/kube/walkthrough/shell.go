package walkthrough

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// again is how long a block that failed rests before it is tried again.
const again = 500 * time.Millisecond

// Shell is one bash that runs the blocks of a page.
type Shell struct {
	dir  string
	cmd  *exec.Cmd
	in   *os.File    // what it reads commands from
	said chan string // what it says when a block is over; closed when nothing of it runs any more
	n    int
}

// NewShell starts a shell in a folder, which holds what blocks print too. inside are a program and its arguments that run the shell
// elsewhere, such as in the namespaces of another process.
func NewShell(dir string, env []string, inside ...string) (*Shell, error) {
	r, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	back, w, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	defer w.Close()
	s := &Shell{dir: dir, in: in, said: make(chan string, 8)}
	go func() {
		defer close(s.said)
		defer back.Close()
		for lines := bufio.NewScanner(back); lines.Scan(); {
			s.said <- lines.Text()
		}
	}()
	words := append(inside, "bash", "--norc", "--noprofile", "-eu")
	s.cmd = exec.Command(words[0], words[1:]...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdin = dir, env, r
	s.cmd.ExtraFiles = []*os.File{w}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.cmd.Stderr, err = os.Create(filepath.Join(dir, ".shell")); err != nil {
		return nil, err
	}
	return s, s.cmd.Start()
}

// Close ends the shell with all that it has started.
func (s *Shell) Close() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM)
	_ = s.in.Close()
	late := time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	for range s.said { // what runs in the background holds its end of this
	}
	_ = s.cmd.Wait()
}

// Run runs a block and returns what it has printed, on standard output and on standard error. A block that waits is tried
// until it succeeds and prints what it has to.
func (s *Shell) Run(ctx context.Context, b Block) (output string, err error) {
	end := time.Now().Add(b.Wait)
	for {
		if output, err = s.once(ctx, b); err == nil && !Matches(b.Want, output) {
			err = fmt.Errorf("it does not print\n%s", b.Want)
		}
		if err == nil || b.Wait == 0 || time.Now().After(end) || ctx.Err() != nil {
			return output, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

func (s *Shell) once(ctx context.Context, b Block) (string, error) {
	s.n++
	script, out := filepath.Join(s.dir, fmt.Sprintf(".block-%d", s.n)), filepath.Join(s.dir, fmt.Sprintf(".output-%d", s.n))
	if err := os.WriteFile(script, []byte(b.Shell+"\n"), 0o600); err != nil {
		return "", err
	}
	// what runs in the background must not write into the output of later blocks, so each has a file; and a shell that ends
	// by -e says nothing, which is how it is known
	line := fmt.Sprintf(". %s </dev/null >%s 2>&1; echo 0 >&3\n", script, out)
	if b.Wait > 0 {
		line = fmt.Sprintf("set +e; (set -eu; . %s) </dev/null >%s 2>&1; echo $? >&3; set -e\n", script, out)
	}
	if _, err := s.in.WriteString(line); err != nil {
		return "", fmt.Errorf("the shell has ended: %w", err)
	}
	// A block that fails ends the shell, while what it left in the background keeps the pipe open: the process tells then.
	ended := time.NewTicker(200 * time.Millisecond)
	defer ended.Stop()
	for isOver := false; ; {
		select {
		case a, ok := <-s.said:
			text, err := os.ReadFile(out)
			if err == nil && !ok {
				err = errEnded
			}
			if err == nil && a != "0" {
				err = fmt.Errorf("it ended with %s", a)
			}
			return string(text), err
		case <-ended.C:
			if isOver {
				text, _ := os.ReadFile(out)
				return string(text), errEnded
			}
			isOver = s.isOver() // what it said last is read first
		case <-ctx.Done():
			text, _ := os.ReadFile(out)
			return string(text), fmt.Errorf("it did not end: %w", context.Cause(ctx))
		}
	}
}

var errEnded = errors.New("a line of it failed, and ended the shell")

// isOver reports whether the shell itself has ended.
func (s *Shell) isOver() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}
