package webhook

import (
	"testing"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"outlets":[{"state":"on"}]}`), "/outlets/0/state")
	f.Add([]byte(`[1]`), "/-1")
	f.Add([]byte(`{"~":1}`), "/~0")
	f.Fuzz(func(t *testing.T, body []byte, pointer string) {
		r := reading{}
		if r.option("pointer", pointer) != nil || r.check() != nil {
			return
		}
		if is, err := r.state(body); err != nil && (is != inventory.PowerUnknown || bmc.KindOf(err) != inventory.Unavailable) {
			t.Errorf("%s, %v", is, err)
		}
	})
}

func FuzzOptions(f *testing.F) {
	f.Add("on.path", "/x/{{.System}}", "7")
	f.Add("header.X-Key", "{{.Password}}", "\r\nX-Other: 1")
	f.Add("on.body", `{"a":"{{.Host}}"}`, `"`)
	f.Fuzz(func(t *testing.T, key, value, system string) {
		d, err := configure(bmc.Target{
			BMC:      inventory.BMC{Address: "http://pdu/api", System: system, Options: map[string]string{"on.path": "/on", key: value}},
			Password: "pw",
		})
		if err != nil {
			if bmc.KindOf(err) != inventory.Invalid {
				t.Errorf("kind %s: %v", bmc.KindOf(err), err)
			}
			return
		}
		for _, c := range d.calls {
			if req, err := d.request(t.Context(), c, d.words()); err == nil && req.URL.Host != "pdu" {
				t.Errorf("the call goes to %s", req.URL.Host)
			}
		}
	})
}
