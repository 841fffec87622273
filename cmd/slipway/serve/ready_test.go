package serve

import (
	"errors"
	"testing"

	"slipway.dev/slipway/cmd/slipway/doctor"
)

func TestADoorThatCannotWorkIsNotReady(t *testing.T) {
	up, down := doctor.Interface{Name: "eno1", IsThere: true, IsUp: true}, doctor.Interface{Name: "eno2", IsThere: true}
	for _, tc := range []struct {
		name       string
		store      error
		isFull     bool
		interfaces []doctor.Interface
		want       map[string]string // reasons; the others are ready
	}{
		{"all is well", nil, false, []doctor.Interface{up}, nil},
		{"the database is locked", errors.New("database is locked (5): /var/lib/x"), false, []doctor.Interface{up}, map[string]string{
			"database": "the database cannot be written",
			"dhcp":     "leases cannot be stored, so no machine is given an address: the database cannot be written",
		}},
		{"the disk is full", nil, true, []doctor.Interface{up}, map[string]string{
			"database": "the disk of the data directory is full",
			"dhcp":     "leases cannot be stored, so no machine is given an address: the disk of the data directory is full",
		}},
		{"one interface of two is down", nil, false, []doctor.Interface{up, down}, nil},
		{"no interface is up", nil, false, []doctor.Interface{down, {Name: "eno3"}}, map[string]string{
			"dhcp": "interface eno2 is down, interface eno3 is missing", "tftp": "interface eno2 is down, interface eno3 is missing", "boot": "interface eno2 is down, interface eno3 is missing",
		}},
	} {
		for _, p := range readiness(tc.store, tc.isFull, tc.interfaces) {
			if p.Reason != tc.want[p.Name] || p.IsReady != (p.Reason == "") {
				t.Errorf("%s: %+v, want the reason %q", tc.name, p, tc.want[p.Name])
			}
		}
	}
}
