package httpboot

import (
	"net/http"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestAConfigurationIsGivenAsItIs(t *testing.T) {
	d := start(t, nil).serve()
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/config/user-data", `user-data 127.0.0.1 http://` + d.addr + ` "application/x" "Cloud-Init/22.4.2" peek=false`},
		{"GET", "/config.cpio", `config.cpio 127.0.0.1 http://` + d.addr + ` "application/x" "Cloud-Init/22.4.2" peek=false`},
		{"GET", "/config/ec2/latest/", `ec2/latest/ 127.0.0.1 http://` + d.addr + ` "application/x" "Cloud-Init/22.4.2" peek=false`},
		{"HEAD", "/config/user-data", ""},
	} {
		res := d.do(c.method, "/boot/"+sid+c.path, map[string]string{"Accept": "application/x", "User-Agent": "Cloud-Init/22.4.2", "Accept-Encoding": "gzip"}, "")
		body := string(res.body)
		if res.StatusCode != 200 || body != c.want || res.Header.Get("Content-Type") != "text/cloud-config" ||
			res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Content-Encoding") != "" || res.ContentLength <= 0 {
			t.Errorf("%s %s: %d %q %v", c.method, c.path, res.StatusCode, body, res.Header)
		}
	}
}

// Ignition ends a boot for ever on 4xx and takes 204 for an empty configuration.
func TestAConfigurationThatCannotBeGivenIsAlwaysA503(t *testing.T) {
	d := start(t, nil).serve()
	for _, kind := range []inventory.Kind{
		inventory.Invalid, inventory.NotFound, inventory.Conflict, inventory.Unauthorized, inventory.Forbidden, inventory.Unavailable, inventory.Internal,
	} {
		d.boots.set(inventory.Errorf(kind, "the reason").WithHint("the hint"))
		res := d.do("GET", "/boot/"+sid+"/config/config.ign", nil, "")
		body := string(res.body)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "5" {
			t.Errorf("%s: %d %v", kind, res.StatusCode, res.Header)
		}
		if isTold := strings.Contains(body, "the reason") && strings.Contains(body, "the hint"); isTold != (kind != inventory.Internal) {
			t.Errorf("%s: %q", kind, body)
		}
	}
}
