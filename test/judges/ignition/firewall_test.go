package ignition_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNFTablesTakesOurFirewall loads each firewall twice into a namespace of its own, as a boot and a reload do, and reads it back.
func TestNFTablesTakesOurFirewall(t *testing.T) {
	judges(t)
	if os.Getuid() != 0 {
		t.Fatal("nft needs a network namespace: run as root")
	}
	program(t, "unshare", "util-linux")
	program(t, "nft", "nftables")
	if out, err := run("", nil, "unshare", "--net", "nft", "add", "table", "inet", "probe"); err != nil {
		t.Skipf("this kernel has no nftables: run make test-judges where it has: %v %s", err, out)
	}
	seen := map[string]bool{}
	for _, j := range all(t).cases {
		files, _ := j.contents(t)
		text := files["/etc/slipway/firewall.nft"]
		if text == "" || seen[text] {
			continue
		}
		seen[text] = true
		file := filepath.Join(t.TempDir(), "firewall.nft")
		write(t, file, text, 0o600)
		out, err := run("", nil, "unshare", "--net", "sh", "-ec", `nft -f "$1"; nft -f "$1"; nft list ruleset`, "sh", file)
		if err != nil {
			t.Errorf("%s: %v\n%s", j.name, err, out)
			continue
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if strings.Contains(line, "dport") && !strings.Contains(line, "{") && !strings.Contains(out, line) {
				t.Errorf("%s: %q is not among the rules:\n%s", j.name, line, out)
			}
		}
		if !strings.Contains(out, "policy drop") {
			t.Errorf("%s: what nobody opened is not closed:\n%s", j.name, out)
		}
	}
	if len(seen) == 0 {
		t.Error("no case has a firewall")
	}
}
