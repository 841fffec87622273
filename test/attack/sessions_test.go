package attack_test

import (
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/client"
)

const attacker = "10.77.255.250"

// TestWhoKnowsASessionTakesNoBootOver asks, from the attacker's address, for all that a boot session has: of machines that
// boot, and of servers that run.
func TestWhoKnowsASessionTakesNoBootOver(t *testing.T) {
	a := victim(t)
	ctx := t.Context()
	a.Good(a.Boot(ctx, simulate.Config{Hosts: 2, Seed: 5, Expect: simulate.StageWaiting}))
	stealsAll(a)
	if n := len(a.Hosts()); n != 2 {
		t.Errorf("there are %d hosts, want the 2 machines", n)
	}

	// They are the unharmed neighbours of the attack, too: accepted, they boot to the end.
	a.ImportLive()
	if _, err := a.API.Profiles.Create(ctx, inventory.Profile{Name: "live", Image: "live", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
		t.Fatal(err)
	}
	a.Good(a.Boot(ctx, simulate.Config{Hosts: 2, Seed: 5, Expect: simulate.StageBooted}))
	before := a.Hosts()
	stealsAll(a)
	for i, h := range a.Hosts() {
		if h.State != before[i].State || h.State == inventory.Failed {
			t.Errorf("host %s is %s, and was %s", h.Name, h.State, before[i].State)
		}
	}
	event(a, "session.refused", attacker)
	if !said(a, inventory.IssueSessionRefused, attacker) {
		t.Error("no issue names the attacker")
	}
	a.Good(a.Boot(ctx, simulate.Config{Hosts: 2, Seed: 5, Expect: simulate.StageBooted}))
}

// stealsAll asks for all places of all sessions, and fails the test for each that is not refused or that moves a session.
func stealsAll(a *netlab.Appliance) {
	t := a.Lab.T
	t.Helper()
	before := sessions(a)
	if len(before) < 2 {
		t.Fatalf("%d boot sessions: this test attacks nothing", len(before))
	}
	for _, s := range before {
		base := "http://10.77.0.1/boot/" + string(s.ID)
		for _, x := range []struct{ at, body string }{
			{at: "/script?mac=" + s.MAC.Hyphens()},
			{at: "/script?mac=" + string(s.MAC) + "&uuid=12345678-1234-1234-1234-123456789abc&serial=stolen"},
			{at: "/ask"},
			{at: "/report?step=failed&detail=stolen"},
			{at: "/report?step=failed", body: "stolen"},
			{at: "/report?step=up", body: "stolen"},
			{at: "/config/"},
			{at: "/config/user-data"},
			{at: "/agent/task?version=1"},
			{at: "/agent/report", body: `{"state":"hello"}`},
			{at: "/" + strings.Repeat("ab", 16) + "/agent/task?version=1"},
		} {
			code, text := ask(a, a.Net.Client, attacker, base+x.at, "", x.body)
			// A boot loader shows the text of a script only, so a refused script comes with 200 and the reason as its text.
			isReason := strings.Contains(text, "belongs to the machine at") || strings.Contains(text, "is not the address of")
			if isScript := code == 200 && (strings.HasPrefix(x.at, "/script") || x.at == "/ask"); !(isScript && isReason) && code < 400 {
				t.Errorf("%s of a boot at %s, asked for by %s: %d\n%.400s", x.at, s.Address, attacker, code, text)
			}
		}
	}
	for _, s := range sessions(a) {
		if s.Address == netip.MustParseAddr(attacker) || s.Outcome == inventory.OutcomeFailed {
			t.Errorf("the boot %s is at %s and has outcome %q", s.ID, s.Address, s.Outcome)
		}
	}
}

func sessions(a *netlab.Appliance) (all []inventory.BootSession) {
	a.Lab.T.Helper()
	for s, err := range a.API.Sessions.All(a.Lab.T.Context(), client.Query{}) {
		if err != nil {
			a.Lab.T.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}
