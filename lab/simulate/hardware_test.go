package simulate

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	agentwire "slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

func TestAMachineIsRefittedByOrder(t *testing.T) {
	id := NewIdentity(1, 0)
	m := &machine{group: &group{}, id: id, outlet: newOutlet(false)}
	c := &controllers{byMAC: map[string]*outlet{id.MACText(): m.outlet}}
	put := func(body string) int {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/"+id.MACText()+"/hardware", strings.NewReader(body)))
		return w.Code
	}
	built := m.hardware()
	for _, bad := range []string{"", "{", `{"hardware":[]}`, `{"hardware":{"disks":7}}`} {
		if code := put(bad); code != http.StatusBadRequest {
			t.Errorf("%q is answered %d", bad, code)
		}
	}
	if code := put(`{"hostname":"<b>","hardware":{"system":{"serial":"S\u0000<i>"},"disks":[{"name":"sdb","serial":"NEW"}]}}`); code != http.StatusOK {
		t.Fatalf("a refit is answered %d", code)
	}
	hw := m.hardware()
	if hw.System.Serial != "S\x00<i>" || hw.System.Product != built.System.Product || hw.CPU.Model != built.CPU.Model ||
		len(hw.Disks) != 1 || hw.Disks[0].Serial != "NEW" || len(hw.Ports) != len(built.Ports) {
		t.Errorf("refitted it is %+v", hw)
	}
	if id := m.says(); id.Serial != hw.System.Serial || id.MAC != m.id.MAC {
		t.Errorf("it says that it is %+v", id)
	}
	d := m.system()
	if p := d.packet(m.id, ask{kind: typeDiscover}); string(p.option(optHostname)) != "<b>" {
		t.Errorf("its system says %q", p.option(optHostname))
	}
	if all := m.certificates(&agentwire.WipeTask{Mode: inventory.CleanQuick}); len(all) != 1 || all[0].Disk.Serial != "NEW" {
		t.Errorf("wiped it certifies %+v", all)
	}
}

func TestSystemsHaveNoNameOfTheirOwn(t *testing.T) {
	m := &machine{group: &group{}, id: NewIdentity(1, 0)}
	d := m.system()
	if v := d.packet(m.id, ask{kind: typeDiscover}).option(optHostname); v != nil {
		t.Errorf("it says %q", v)
	}
}
