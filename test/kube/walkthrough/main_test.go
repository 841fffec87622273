package walkthrough

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/kube/cluster"
)

// insideEnv names the network namespace of the machines, for the process that runs in the server's.
const insideEnv = "SLIPWAY_WALKTHROUGH_RACK"

// uplink is what the server's interface is called on the pages.
const uplink = "eno1"

// cable is the machines' end of it.
const cable = "vc"

// TestMain runs the tests again in a network of their own, where the addresses of the pages are free: all that they start
// is in there with them.
func TestMain(m *testing.M) {
	if os.Getenv(cluster.Env) == "" || os.Getenv(insideEnv) != "" || os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	code, err := inside()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func inside() (code int, err error) {
	n, err := simulate.NewNet(fmt.Sprintf("slipway-walk-%d", os.Getpid()), netip.MustParsePrefix("10.0.0.1/24"))
	if err != nil {
		return 1, err
	}
	defer n.Close()
	for _, words := range []string{
		"link set " + n.ServerIf + " down", "link set " + n.ServerIf + " name " + uplink, "link set " + uplink + " up",
		"addr add 10.0.0.100/24 dev " + uplink, // of the control plane of the cluster that is made
		"addr add 10.0.9.1/24 dev lo",          // of the controllers: on loopback that is all of 10.0.9.0/24
	} {
		if out, err := exec.Command("ip", append([]string{"-n", n.Server}, strings.Fields(words)...)...).CombinedOutput(); err != nil {
			return 1, fmt.Errorf("ip %s: %w: %s", words, err, out)
		}
	}
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.Server, os.Args[0]}, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), insideEnv+"="+n.Client)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return 1, err
	}
	return cmd.ProcessState.ExitCode(), nil
}
