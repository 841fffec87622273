package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

func TestStaticAddressesAreThoseOfThePool(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.must(201, nil, "POST", "/api/v1/subnets", `{"name":"prod","cidr":"192.0.2.0/24","mode":"off","staticRanges":[{"first":"192.0.2.10","last":"192.0.2.19"}]}`)
	var row wire.Address
	r.must(200, &row, "PUT", "/api/v1/addresses/192.0.2.10", `{"machine":"alpha-m"}`)
	if row.Machine != "alpha-m" || row.From != "person" || row.Subnet != "prod" {
		t.Errorf("kept: %+v", row)
	}
	r.must(200, nil, "PUT", "/api/v1/addresses/192.0.2.11", `{"machine":"beta-m"}`)
	who := r.as("op", inventory.Grant{Role: inventory.Operator, Pool: "alpha"})
	if a := r.via(who, http.MethodGet, "/api/v1/addresses", ""); a.status != 200 || !strings.Contains(a.body, "192.0.2.10") || strings.Contains(a.body, "192.0.2.11") {
		t.Errorf("the list of alpha: %d %s", a.status, a.body)
	}
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		says                     string
	}{
		{"an address of another pool's machine", "PUT", "/api/v1/addresses/192.0.2.11", `{"machine":"alpha-m"}`, 422, "192.0.2.11 is kept for"},
		{"a machine of another pool", "PUT", "/api/v1/addresses/192.0.2.12", `{"machine":"beta-m"}`, 404, ""},
		{"freeing another pool's", "DELETE", "/api/v1/addresses/192.0.2.11", "", 404, ""},
		{"nobody", "PUT", "/api/v1/addresses/192.0.2.12", `{}`, 422, "one machine or host"},
		{"no address", "PUT", "/api/v1/addresses/x", `{"machine":"alpha-m"}`, 422, "is not an address"},
		{"outside of the static ranges", "PUT", "/api/v1/addresses/192.0.2.40", `{"machine":"alpha-m"}`, 422, "in no static range"},
		{"a dry run", "PUT", "/api/v1/addresses/192.0.2.13?dryRun=true", `{"machine":"alpha-m"}`, 200, "192.0.2.13"},
		{"another one for the machine", "PUT", "/api/v1/addresses/192.0.2.14", `{"machine":"alpha-m"}`, 200, "192.0.2.14"},
		{"the first is free then", "DELETE", "/api/v1/addresses/192.0.2.10", "", 404, ""},
		{"freeing one that nobody asks for", "DELETE", "/api/v1/addresses/192.0.2.14", "", 204, ""},
	} {
		a := r.via(who, tc.method, tc.path, tc.body)
		if a.status != tc.status || !strings.Contains(a.body, tc.says) || strings.Contains(a.body, "beta-m") && tc.status == 422 {
			t.Errorf("%s: %d %s; want %d", tc.name, a.status, a.body, tc.status)
		}
	}
}

func TestAMachineThatWouldHaveAnothersAddressIsRefused(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	const config = `"config":"network: {interfaces: [{name: lan0, mac: boot, addresses: [192.0.2.50/24]}]}\n"`
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"one","profile":"worker",`+config+`}`)
	for _, path := range []string{"/api/v1/machines?dryRun=true", "/api/v1/machines"} {
		a := r.ask("POST", path, `{"name":"two","profile":"worker",`+config+`}`)
		p := a.problem(t)
		if a.status != 422 || !strings.Contains(p.Detail, "machine two: the address 192.0.2.50 is that of machine one") || !strings.Contains(p.Hint, "fromSubnets") {
			t.Errorf("POST %s: %d %s", path, a.status, a.body)
		}
	}
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"two","profile":"worker"}`)
	if a := r.ask("PATCH", "/api/v1/machines/two", `{`+config+`}`); a.status != 422 {
		t.Errorf("a change: %d %s", a.status, a.body)
	}
	if a := r.ask("PATCH", "/api/v1/machines/two", `{"hostname":"one"}`); a.status != 422 {
		t.Errorf("a name: %d %s", a.status, a.body)
	}
	if a := r.ask("POST", "/api/v1/reservations", `{"subnet":"rack1","address":"10.0.0.99","mac":"52:54:00:c3:00:01"}`); a.status != 201 {
		t.Errorf("a reservation of a free address: %d %s", a.status, a.body)
	}
}

func TestARefusedHostNameSaysNotWhoseItIs(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"hush","profile":"worker","pool":"beta","hostname":"db-prod-1"}`)
	r.must(201, nil, "POST", "/api/v1/hosts", `{"name":"alpha-2","nics":[{"mac":"52:54:00:a1:00:02"}],"labels":{"team":"alpha"}}`)
	r.must(200, nil, "POST", "/api/v1/hosts/alpha-2/adopt", `{"on":true}`)
	who := r.as("op", inventory.Grant{Role: inventory.Operator, Pool: "alpha"})
	for _, tc := range []struct{ method, path, body string }{
		{"PATCH", "/api/v1/hosts/alpha-2", `{"name":"db-prod-1"}`},
		{"PUT", "/api/v1/hosts/alpha-2", `{"name":"db-prod-1","nics":[{"mac":"52:54:00:a1:00:02"}],"labels":{"team":"alpha"},"isAdopted":true}`},
		{"POST", "/api/v1/machines/adopt", `{"name":"old","profile":"worker","pool":"alpha","host":"alpha-2","hostname":"db-prod-1"}`},
	} {
		a := r.via(who, tc.method, tc.path, tc.body)
		if a.status != 422 || !strings.Contains(a.body, "db-prod-1 is that of machine") || strings.Contains(a.body, "hush") {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, a.status, a.body)
		}
		if all := r.ask(tc.method, tc.path, tc.body); all.status != 422 || !strings.Contains(all.body, "machine hush") {
			t.Errorf("%s %s by an admin: %d %s", tc.method, tc.path, all.status, all.body)
		}
	}
}

func TestAReservationDoesNotMoveTheAddressOfAMachineToAnother(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"one","profile":"worker","pool":"alpha","placement":{"host":"alpha-1"},`+
		`"config":"network: {interfaces: [{name: lan0, mac: boot, addresses: [10.0.0.10/24]}]}\n"}`)
	put := func(address, mac, hostname string) answer {
		return r.ask("PUT", "/api/v1/reservations/"+address, fmt.Sprintf(`{"subnet":"rack1","address":"%s","mac":"%s","hostname":"%s"}`, address, mac, hostname))
	}
	if a := put("10.0.0.10", "52:54:00:c3:00:01", ""); a.status != 409 || !strings.Contains(a.body, "10.0.0.10 is the address of machine one") {
		t.Errorf("the address of a machine for another one: %d %s", a.status, a.body)
	}
	if a := put("10.0.0.10", "52:54:00:a1:00:01", "one"); a.status != 200 {
		t.Errorf("a change that leaves the machine its address: %d %s", a.status, a.body)
	}
	if a := put("10.0.0.11", "52:54:00:c3:00:01", ""); a.status != 200 {
		t.Errorf("an address that no machine has: %d %s", a.status, a.body)
	}
}

func TestTheNetworkTakesNoAddressOfAMachine(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	const has = "network: {interfaces: [{name: lan0, mac: boot, addresses: [192.0.2.50/24, 192.0.2.60/24]}]}"
	r.must(201, nil, "POST", "/api/v1/subnets", `{"name":"prod","cidr":"192.0.2.0/24","mode":"off","gateway":"192.0.2.1","ranges":[{"first":"192.0.2.50","last":"192.0.2.55"}]}`)
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"one","profile":"worker","pool":"beta","config":"`+has+`\n"}`)
	r.must(201, nil, "POST", "/api/v1/targets", `{"name":"lab","endpoint":"192.0.2.90:6443"}`)
	for _, tc := range []struct {
		name, method, path, body, says, at string
	}{
		{"a gateway", "PUT", "/subnets/prod", `{"cidr":"192.0.2.0/24","mode":"off","gateway":"192.0.2.50"}`, "192.0.2.50 is the address of machine one (machine/one:1), and would be the gateway of subnet prod", "gateway"},
		{"a range", "PUT", "/subnets/prod", `{"cidr":"192.0.2.0/24","mode":"full","ranges":[{"first":"192.0.2.56","last":"192.0.2.70"}]}`, "192.0.2.60 is the address of machine one (machine/one:1), and would be in the range 192.0.2.56-192.0.2.70", "ranges"},
		{"a mode that leases", "PUT", "/subnets/prod", `{"cidr":"192.0.2.0/24","mode":"full","gateway":"192.0.2.1","ranges":[{"first":"192.0.2.50","last":"192.0.2.55"}]}`, "192.0.2.50 is the address of machine one", "ranges"},
		{"a range of an import", "POST", "/transfer?format=yaml&file=a.yaml", "subnets: [{name: prod, cidr: 192.0.2.0/24, mode: full, ranges: [192.0.2.60-192.0.2.70]}]\n", "192.0.2.60 is the address of machine one", "ranges"},
		{"a controller of an import", "POST", "/transfer?format=yaml&file=a.yaml", "bmcs: [{host: alpha-1, driver: redfish, address: 'https://192.0.2.50'}]\n", "192.0.2.50 is the address of machine one", "address"},
		{"a virtual address", "PUT", "/targets/lab", `{"endpoint":"192.0.2.50:6443","vip":"192.0.2.50"}`, "192.0.2.50 is the address of machine one, and would be the virtual address of target lab", "vip"},
	} {
		a := r.ask(tc.method, "/api/v1"+tc.path, tc.body)
		p := a.problem(t)
		if a.status != 422 || !strings.Contains(p.Detail, tc.says) || p.Hint == "" {
			t.Errorf("%s: %d %s; want it refused: %s", tc.name, a.status, a.body, tc.says)
			continue
		}
		if len(p.Errors) != 1 || !strings.HasSuffix(p.Errors[0].Location, tc.at) {
			t.Errorf("%s: fields %+v, want %s", tc.name, p.Errors, tc.at)
		}
	}
	for _, tc := range []struct{ name, method, path, body string }{
		{"a range that leaves it out", "PUT", "/subnets/prod", `{"cidr":"192.0.2.0/24","mode":"full","gateway":"192.0.2.1","ranges":[{"first":"192.0.2.100","last":"192.0.2.155"}]}`},
		{"a virtual address that nobody has", "PUT", "/targets/lab", `{"endpoint":"192.0.2.91:6443","vip":"192.0.2.91"}`},
	} {
		if a := r.ask(tc.method, "/api/v1"+tc.path, tc.body); a.status != 200 {
			t.Errorf("%s: %d %s", tc.name, a.status, a.body)
		}
	}
}

// TestARangeIsComparedWithAllThatIsHeld has a host first whose address is reserved for it, which a range may lease, but no gateway be.
func TestARangeIsComparedWithAllThatIsHeld(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.must(201, nil, "POST", "/api/v1/subnets", `{"name":"prod","cidr":"192.0.2.0/24","mode":"off"}`)
	r.must(200, nil, "PUT", "/api/v1/hosts/alpha-1", `{"name":"alpha-1","nics":[{"mac":"52:54:00:a1:00:01"}],"profile":"worker","labels":{"team":"alpha"}}`)
	const has = `network: {interfaces: [{name: lan0, mac: boot, addresses: [192.0.2.%s/24]}]}`
	r.must(200, nil, "PUT", "/api/v1/layers/host%2Falpha-1", `{"config":"`+strings.Replace(has, "%s", "40", 1)+`\n"}`)
	r.must(201, nil, "POST", "/api/v1/reservations", `{"subnet":"prod","address":"192.0.2.40","mac":"52:54:00:a1:00:01"}`)
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"one","profile":"worker","pool":"beta","config":"`+strings.Replace(has, "%s", "60", 1)+`\n"}`)
	for body, want := range map[string]string{
		`{"cidr":"192.0.2.0/24","mode":"full","ranges":[{"first":"192.0.2.40","last":"192.0.2.70"}]}`: "192.0.2.60 is the address of machine one",
		`{"cidr":"192.0.2.0/24","mode":"off","gateway":"192.0.2.40"}`:                                 "192.0.2.40 is the address of host alpha-1",
	} {
		if a := r.ask("PUT", "/api/v1/subnets/prod", body); a.status != 422 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	r.must(200, nil, "PUT", "/api/v1/subnets/prod", `{"cidr":"192.0.2.0/24","mode":"full","ranges":[{"first":"192.0.2.40","last":"192.0.2.50"}]}`)
}

func TestAControllerIsNotAtTheAddressOfAMachine(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"hush","profile":"worker","pool":"beta","config":"network: {interfaces: [{name: lan0, mac: boot, addresses: [192.0.2.50/24]}]}\n"}`)
	who := r.as("op", inventory.Grant{Role: inventory.Admin, Pool: "alpha"})
	put := func(address string) answer {
		return r.via(who, "PUT", "/api/v1/hosts/alpha-1/bmc", `{"driver":"redfish","address":"`+address+`","username":"root","password":"calvin"}`)
	}
	for _, address := range []string{"https://192.0.2.50", "https://192.0.2.50:8443/redfish", "https://[::ffff:192.0.2.50]"} {
		if a := put(address); a.status != 422 || !strings.Contains(a.body, "192.0.2.50 is the address of machine") || strings.Contains(a.body, "hush") {
			t.Errorf("%s: %d %s", address, a.status, a.body)
		}
	}
	if a := put("https://192.0.2.51"); a.status != 200 {
		t.Errorf("an address that nobody has: %d %s", a.status, a.body)
	}
}
