package nodes

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAUnitIsReadAsSystemdReadsIt(t *testing.T) {
	u, err := parseUnit("etcd", "node2", `[Unit]
Description=etcd
[Service]
# a comment
Environment=DAEMON_ARGS=
Environment=ETCD_NAME=%H
Environment=DAEMON_ARGS=--a --b=1
EnvironmentFile=-/etc/default/%p-that-is-not-there
Type=notify
ExecStart=/usr/bin/etcd $DAEMON_ARGS $MISSING -x
Restart=on-abnormal
RestartSec=2
`)
	if err != nil {
		t.Fatal(err)
	}
	if u.kind != "notify" || u.restart != "on-abnormal" || u.restartIn != 2*time.Second {
		t.Errorf("%+v", u)
	}
	cmd, err := u.command()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(cmd.Args, " "); got != "/usr/bin/etcd --a --b=1 -x" {
		t.Errorf("it runs %q", got)
	}
	if !slices.Contains(cmd.Env, "ETCD_NAME=node2") {
		t.Errorf("with %q", cmd.Env)
	}
}

func TestAUnitThatTheTestDoesNotKnowIsRefused(t *testing.T) {
	for _, text := range []string{"[Service]\nExecStartPre=/bin/true\n", "[Service]\nRestartSec=soon\n", "[Service]\nUser\n"} {
		if u, err := parseUnit("x", "node1", text); err == nil {
			t.Errorf("%q is read as %+v", text, u)
		}
	}
}

func TestThePageHasTheUnitOfSlipway(t *testing.T) {
	if _, err := UnitOf("no unit"); err == nil {
		t.Error("a page without a unit is read")
	}
}
