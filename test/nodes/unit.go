package nodes

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Where the logs and the process ids of units are on a node.
const (
	unitLogs = "/run/units"
	readyIn  = 90 * time.Second // DefaultTimeoutStartSec of systemd
	stopIn   = 90 * time.Second
)

func unitLog(name string) string { return filepath.Join(unitLogs, name) }
func unitPID(name string) string { return filepath.Join(unitLogs, name+".pid") }

// unit is what a unit file of systemd says, as far as the units of the page say it.
type unit struct {
	name                string
	kind                string // Type
	user                string
	env                 []string
	files               []string // EnvironmentFile
	words               string   // ExecStart
	restart             string
	restartIn           time.Duration
	stateDir, stateMode string
	conditionPath       string
}

// meaningless are the keys that change nothing on a node.
var meaningless = []string{
	"Description", "Documentation", "After", "Wants", "WantedBy", "Alias", "LimitNOFILE", "TimeoutSec", "KillMode", "ExecReload",
	"PermissionsStartOnly", "Group",
}

// readUnit reads the file of a unit.
func readUnit(name string) (unit, error) {
	host, err := os.Hostname()
	if err != nil {
		return unit{}, err
	}
	for _, dir := range []string{"/etc/systemd/system", "/lib/systemd/system"} {
		if text, err := os.ReadFile(filepath.Join(dir, name+".service")); err == nil {
			return parseUnit(name, host, string(text))
		}
	}
	return unit{}, fmt.Errorf("unit %s.service not found", name)
}

// parseUnit reads a unit. A line that it does not know is an error, so that a node does not start something else than a machine does.
func parseUnit(name, host, text string) (unit, error) {
	u := unit{name: name, kind: "simple", restartIn: 100 * time.Millisecond, stateMode: "0755"}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found {
			return u, fmt.Errorf("%s.service: the test does not know %s", name, line)
		}
		value = strings.NewReplacer("%H", host, "%p", name).Replace(value)
		switch key {
		case "Type":
			u.kind = value
		case "User":
			u.user = value
		case "Environment":
			u.env = append(u.env, value)
		case "EnvironmentFile":
			u.files = append(u.files, value)
		case "ExecStart":
			u.words = value
		case "Restart":
			u.restart = value
		case "RestartSec":
			n, err := strconv.Atoi(value)
			if err != nil {
				return u, fmt.Errorf("%s.service: %s", name, line)
			}
			u.restartIn = time.Duration(n) * time.Second
		case "StateDirectory":
			u.stateDir = value
		case "StateDirectoryMode":
			u.stateMode = value
		case "ConditionPathExists":
			u.conditionPath = value
		default:
			if !slices.Contains(meaningless, key) {
				return u, fmt.Errorf("%s.service: the test does not know %s", name, line)
			}
		}
	}
	return u, nil
}

// command is the program of the unit with its environment, which later files override.
func (u unit) command() (*exec.Cmd, error) {
	env := append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}, u.env...)
	for _, path := range u.files {
		text, err := os.ReadFile(strings.TrimPrefix(path, "-"))
		if errors.Is(err, os.ErrNotExist) && path[0] == '-' {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				key, value, _ := strings.Cut(line, "=")
				env = append(env, key+"="+strings.Trim(value, `"`))
			}
		}
	}
	var words []string
	for _, word := range strings.Fields(u.words) {
		if !strings.HasPrefix(word, "$") {
			words = append(words, word)
			continue
		}
		for _, set := range slices.Backward(env) { // "$DAEMON_ARGS" is as many words as it has
			if value, ok := strings.CutPrefix(set, word[1:]+"="); ok {
				words = append(words, strings.Fields(value)...)
				break
			}
		}
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = env
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if u.user != "" {
		is, err := user.Lookup(u.user)
		if err != nil {
			return nil, err
		}
		uid, err := strconv.ParseUint(is.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(is.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		cmd.Env = append(cmd.Env, "HOME="+is.HomeDir, "USER="+u.user, "LOGNAME="+u.user)
	}
	return cmd, nil
}

// systemctl starts and stops units. "enable" has no meaning on a machine that never starts again.
func systemctl(args []string) error {
	if args[0] == "daemon-reload" && len(args) == 1 {
		return nil
	}
	if len(args) == 3 && args[0] == "enable" && args[1] == "--now" {
		args = []string{"start", args[2]}
	}
	if len(args) != 2 {
		return fmt.Errorf("the test does not know: systemctl %s", strings.Join(args, " "))
	}
	switch name := args[1]; args[0] {
	case "start":
		return startUnit(name)
	case "stop":
		return stopUnit(name)
	case "restart":
		if err := stopUnit(name); err != nil {
			return err
		}
		return startUnit(name)
	}
	return fmt.Errorf("the test does not know: systemctl %s", strings.Join(args, " "))
}

// startUnit starts a supervisor for the unit, and waits until it is started as its type says.
func startUnit(name string) error {
	u, err := readUnit(name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(u.conditionPath); u.conditionPath != "" && err != nil {
		return nil // systemd skips it, too, without an error
	}
	if supervisor(name) != 0 {
		return nil
	}
	if err := os.MkdirAll(unitLogs, 0o755); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(unitLog(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, name)
	cmd.Env, cmd.Stderr = append(os.Environ(), childEnv+"=unit"), log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := os.WriteFile(unitPID(name), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		return err
	}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		said <- line
	}()
	select {
	case line := <-said:
		if line == "started\n" {
			return nil
		}
		return fmt.Errorf("job for %s.service failed because the control process exited with error code: %s", name, line)
	case <-time.After(readyIn):
		return fmt.Errorf("job for %s.service failed because a timeout was exceeded", name)
	}
}

// supervisor returns the process that keeps a unit running, 0 for none.
func supervisor(name string) int {
	text, err := os.ReadFile(unitPID(name))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil || syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

func stopUnit(name string) error {
	if _, err := readUnit(name); err != nil {
		return err
	}
	pid := supervisor(name)
	if pid == 0 {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	for end := time.Now().Add(stopIn); supervisor(name) != 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s.service does not stop", name)
		}
	}
	return nil
}

// superviseUnit keeps the program of a unit running until SIGTERM. It says "started" when the unit is, as its type says.
func superviseUnit(args []string) error {
	u, err := readUnit(args[0])
	if err != nil {
		return err
	}
	if u.stateDir != "" {
		mode, err := strconv.ParseUint(u.stateMode, 8, 32)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join("/var/lib", u.stateDir), os.FileMode(mode)); err != nil {
			return err
		}
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	started := sync.OnceFunc(func() { fmt.Println("started") }) // whoever reads it has gone after the first
	for {
		ended, cmd, err := u.start(started)
		if err != nil {
			return err
		}
		select {
		case err := <-ended:
			fmt.Fprintf(os.Stderr, "%s ended: %v\n", u.name, err)
			if err == nil || u.restart == "" {
				return err
			}
			select {
			case <-time.After(u.restartIn):
			case <-stop:
				return nil
			}
		case <-stop:
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-ended
			return nil
		}
	}
}

// start starts the program once.
func (u unit) start(started func()) (ended chan error, cmd *exec.Cmd, err error) {
	if cmd, err = u.command(); err != nil {
		return nil, nil, err
	}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if u.kind == "notify" {
		if err := u.awaitReady(cmd, started); err != nil {
			return nil, nil, err
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	if u.kind != "notify" {
		started()
	}
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, cmd, nil
}

// awaitReady calls started when the program has sent READY=1 (sd_notify(3)).
func (u unit) awaitReady(cmd *exec.Cmd, started func()) error {
	path := filepath.Join(unitLogs, u.name+".notify")
	_ = os.Remove(path)
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o777); err != nil {
		return err
	}
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+path)
	go func() {
		defer l.Close()
		for buf := make([]byte, 4096); ; {
			n, err := l.Read(buf)
			if err != nil {
				return
			}
			if strings.Contains(string(buf[:n]), "READY=1") {
				started()
				return
			}
		}
	}()
	return nil
}
