package postgres

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// guard ends a server or a cluster and removes its folder when the test is done with it, or when the test process is gone, however it
// ended. It is a shell that waits at the end of a pipe: the kernel closes the other end with the process. There is no hook for the end of a test process
// that also runs when somebody kills it.
type guard struct {
	pipe *os.File
	cmd  *exec.Cmd
	once sync.Once
}

// The server ends as after a power cut: nobody needs what it has. CONT is for one that a test has stopped with SIGSTOP. Of a cluster,
// Patroni ends first: it would start a server again.
const guardScript = `
cat >/dev/null
for file in "$1"/*/pid; do
	[ -e "$file" ] && kill -KILL "$(cat "$file")"
done 2>/dev/null
for file in "$1/data/postmaster.pid" "$1"/*/data/postmaster.pid; do
	pid=$(head -n 1 "$file") || continue
	kill -QUIT "$pid"; kill -CONT "$pid"
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		kill -0 "$pid" || break
		sleep 0.1
	done
	kill -KILL "$pid"
done 2>/dev/null
rm -rf "$1"
`

func newGuard(dir string) (*guard, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	cmd := exec.Command("/bin/sh", "-c", guardScript, "guard", dir)
	cmd.Dir, cmd.Stdin = "/", read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C in the terminal ends the test, and not the guard
	if err := cmd.Start(); err != nil {
		write.Close()
		return nil, err
	}
	return &guard{pipe: write, cmd: cmd}, nil
}

// end ends the server and waits until its folder is gone.
func (g *guard) end() {
	g.once.Do(func() {
		g.pipe.Close()
		_ = g.cmd.Wait()
	})
}
