// Package attack_test owns the red-team suite: each test attacks a running appliance in network namespaces, as somebody
// would who has little: a place on the boot network, the session of a machine, or a role in one pool. An attack ends in a
// refusal with a reason, an event or issue that names it, and a neighbour that goes on unharmed. The tests need root and
// are switched on by SLIPWAY_NET=1, as make test-attack does; nothing they send leaves the namespaces.
package attack_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/test/netlab"
)

// children are the programs that this test binary turns into when it starts itself inside a namespace.
func children() map[string]func() error {
	return map[string]func() error{"serve": serveAll}
}

func TestMain(m *testing.M) { netlab.Main(m, children()) }

const (
	tlsEnv   = "SLIPWAY_ATTACK_TLS=1"      // the boot door sends secrets over TLS only
	filesEnv = "SLIPWAY_ATTACK_FILES=4096" // how many files the server may open, as on many systems
	fewEnv   = "SLIPWAY_ATTACK_FILES=512"  // so few that some hundred connections would use them up
)

// has reports whether the test started this server with a setting.
func has(setting string) bool {
	name, value, _ := strings.Cut(setting, "=")
	return os.Getenv(name) == value
}

// filesOf is how many files the server of a setting may open, 0 for as many as the system allows.
func filesOf() (n uint64) {
	n, _ = strconv.ParseUint(os.Getenv("SLIPWAY_ATTACK_FILES"), 10, 32)
	return n
}

func serveAll() error {
	if n := filesOf(); n > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			return err
		}
	}
	return netlab.Serve(func(cfg *serve.Config) {
		cfg.Database, cfg.Instance = os.Getenv(databaseEnv), os.Getenv(instanceEnv)
		if has(tlsEnv) {
			cfg.BootTLSPort, cfg.Confidential = 8443, true
		}
	})
}

const requestLimit = 10 * time.Second

// victim is the appliance under attack. Its machines and the attacker sit in the namespace Net.Client; the attacker has the
// address 10.77.255.250 there, which our DHCP gave to nobody.
func victim(t *testing.T, env ...string) *netlab.Appliance {
	t.Helper()
	a := netlab.NewAppliance(netlab.New(t, "make test-attack", "curl"), nil, env...)
	a.Lab.In(a.Net.Client, "ip", "addr", "add", "10.77.255.250/16", "dev", a.Net.ClientIf)
	return a
}

// status asks for a URL from the attacker's namespace, and returns the HTTP status, 000 when nobody answers.
func status(a *netlab.Appliance, args ...string) string {
	out, _ := a.Lab.Try(requestLimit, "ip", append([]string{"netns", "exec", a.Net.Client, "curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}"}, args...)...)
	return strings.TrimSpace(out)
}
