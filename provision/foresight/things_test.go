package foresight

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

func TestTheEndOfAMachineSaysWhatIsLostAndWhatRemains(t *testing.T) {
	for _, x := range []struct {
		e    Ending
		want string
	}{
		{Ending{Verb: "delete", Name: "web"}, "machine web is deleted; it has no host, so Slipway switches nothing off and wipes nothing"},
		{
			Ending{Verb: "delete", Name: "web", Host: "r1", Driver: inventory.Redfish, AddressN: 1},
			"switches off host r1, wipes it (quick) and makes it free; all data on its disks is lost; 1 static address is free again",
		},
		{
			Ending{Verb: "delete", Name: "web", Host: "r1", Driver: inventory.IPMI, Mode: inventory.CleanSecure, KeepN: 2, Node: "web-1", AddressN: 2},
			"drains and deletes node web-1, switches off host r1, wipes it (secure), but for 2 disks to keep and makes it free; all data on its disks is lost; 2 static addresses are free again",
		},
		{
			Ending{Verb: "delete", Name: "web", Host: "r1"},
			"asks somebody to switch off host r1 by hand, wipes it (quick) and makes it free; all data on its disks is lost",
		},
		{
			Ending{Verb: "delete", Name: "web", Host: "r1", Driver: inventory.IPMI, Mode: inventory.CleanNone},
			"switches off host r1 and makes it free with its disks as they are; the next machine can read the old data",
		},
		{
			Ending{Verb: "delete", Name: "web", Host: "r1", Driver: inventory.IPMI, Mode: inventory.CleanNone, StaysDirty: true},
			"switches off host r1; its disks stay as they are, and no other machine takes the host before somebody wipes it",
		},
		{
			Ending{Verb: "delete", Name: "web", Host: "r1", IsAdopted: true},
			"machine web is forgotten; host r1 is adopted, so Slipway switches nothing off and wipes nothing, and its system continues to run",
		},
		{
			Ending{Verb: "force", Name: "web", Host: "r1", Driver: inventory.IPMI, AddressN: 1},
			"Slipway quarantines host r1 without a fence and without a wipe: the old system may still run; the addresses of machine web stay with the host until a wipe",
		},
		{
			Ending{Verb: "reinstall", Name: "web", Host: "r1", Image: "debian-12", KeepN: 1},
			"restarts host r1 and installs debian-12 on it again; that overwrites the data on its disks, but for 1 disk to keep; the machine keeps its host and its addresses",
		},
	} {
		if got := End(x.e); got != x.want {
			t.Errorf("%+v\n says %q\nwant %q", x.e, got, x.want)
		}
	}
}

func TestADeletionCountsWhatIsLost(t *testing.T) {
	got := Delete(Thing{Noun: "subnet", Name: "rack1", N: map[string]int{"reservation": 1, "lease": 12}})
	want := "nobody in subnet rack1 gets an address or a boot from this server any more; 1 reservation and 12 leases are lost; " +
		"machines there keep their addresses until their leases end"
	if got != want {
		t.Errorf("says %q", got)
	}
	if got := Delete(Thing{Noun: "user", Name: "eve"}); !strings.Contains(got, "no token and no login end") {
		t.Errorf("says %q", got)
	}
	keys := slices.Collect(maps.Keys(things))
	for _, n := range noun.All() {
		keys = append(keys, n.About().One)
	}
	for _, key := range keys {
		noun, how, _ := strings.Cut(key, " ")
		text := Delete(Thing{Noun: noun, How: how, Name: "NAME"})
		if strings.Contains(text, "{") || !strings.Contains(text, "NAME") {
			t.Errorf("%s: %q", key, text)
		}
	}
}
