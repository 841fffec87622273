package pxe

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestAMachineThatIsRefusedSeesWhyAndAsksAgain(t *testing.T) {
	for _, c := range []struct {
		what      string
		err       error
		says, not string
	}{
		{"something a person may see", inventory.Errorf(inventory.Unavailable, "the database is read-only").WithHint("free disk space"), "the database is read-only", ""},
		{"a bug", errors.New("open /var/lib/slipway/db: denied"), "internal error", "/var/lib"},
		{"words that would be commands", inventory.Errorf(inventory.Invalid, "x\nreboot\n${uuid} && shell"), "Slipway: ", "${uuid}"},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := string(RefusalScript("http://10.0.0.1", "", "52:54:00:aa:00:01", c.err))
			if !strings.HasPrefix(got, "#!ipxe\n") || !strings.Contains(got, c.says) || !strings.Contains(got, "\nsleep ") ||
				!strings.Contains(got, "chain --replace --autofree --timeout 15000 http://10.0.0.1/boot/ask ") {
				t.Error(got)
			}
			if c.not != "" && strings.Contains(got, c.not) || strings.Contains(got, "\nreboot") {
				t.Errorf("it has what it must not:\n%s", got)
			}
		})
	}
}

func TestTheBaseOfURLs(t *testing.T) {
	for _, c := range []struct {
		addr string
		port int
		want string
	}{
		{"10.0.0.1", 80, "http://10.0.0.1"},
		{"10.0.0.1", 8081, "http://10.0.0.1:8081"},
		{"::ffff:10.0.0.1", 80, "http://10.0.0.1"},
		{"fd00::1", 80, "http://[fd00::1]"},
		{"fd00::1", 8081, "http://[fd00::1]:8081"},
	} {
		if got := BaseURL(netip.MustParseAddr(c.addr), c.port); got != c.want {
			t.Errorf("%s port %d: %s, want %s", c.addr, c.port, got, c.want)
		}
	}
}
