package dhcp

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

// withAnswers is a server beside another instance, 10.98.0.2: it answers where it has the duty.
func withAnswers(held *[]string, told *[]pxe.Unanswered) deskOption {
	return func(_ *lease.Network, c *Config) {
		c.Answers = func(subnet string) bool { return slices.Contains(*held, subnet) }
		c.Instances = func(a netip.Addr) bool { return a == ip("10.98.0.2") }
		c.Unanswered = func(u pxe.Unanswered) { *told = append(*told, u) }
	}
}

func TestOnlyTheInstanceWithTheNetworkAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		mode   inventory.SubnetMode
		packet []byte
		to     string
		isOurs bool // answered also while another instance has the network
	}{
		{"a DISCOVER", inventory.ModeFull, build(discover, 1, nil), "", false},
		{"a DISCOVER through a relay", inventory.ModeFull, build(discover, 1, giaddr("10.5.0.1")), "10.98.0.1", false},
		{"a REQUEST of a machine that remembers its address", inventory.ModeFull, build(request, 1, nil, opt(50, 10, 98, 0, 85)), "", false},
		{"a renewal", inventory.ModeFull, build(request, 1, ciaddr(ip("10.98.0.85"))), "10.98.0.1", false},
		{"firmware beside another DHCP server", inventory.ModeProxy, build(discover, 1, nil, asUEFI...), "", false},
		{"an INFORM to all", inventory.ModeFull, build(inform, 1, ciaddr(ip("10.98.0.85"))), "", false},
		{"an INFORM to this instance", inventory.ModeFull, build(inform, 1, ciaddr(ip("10.98.0.85"))), "10.98.0.1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			held, told := []string{}, []pxe.Unanswered{}
			d := newDesk(t, withMode(c.mode), withAnswers(&held, &told))
			got := d.ask(c.packet, c.to)
			if c.isOurs != (len(got) == 1) {
				t.Errorf("without the network it answers with %s", kinds(got))
			}
			if !c.isOurs && (len(told) != 1 || told[0].Reason != string(lease.Elsewhere) || !told[0].IsElsewhere || !told[0].IsMeant || told[0].Client.Subnet == "") {
				t.Errorf("the reason is %+v", told)
			}
			if len(d.store.groups) > 0 || len(d.boots.lines) > 0 {
				t.Errorf("it stores %v and says %q", d.store.groups, d.boots.lines)
			}
			held = []string{"rack1", "far"}
			if got := d.ask(c.packet, c.to); len(got) != 1 {
				t.Errorf("with the network it answers with %s", kinds(got))
			}
		})
	}
}

// TestAMachineNeedNotAskAgainWhenItsNetworkComes lets another instance die while a machine waits for its offer.
func TestAMachineNeedNotAskAgainWhenItsNetworkComes(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration // when the network comes
		then  []byte        // what the machine sends before that
		isFor bool          // another network comes
		want  string
	}{
		{"the network comes", 4 * time.Second, nil, false, "offer"},
		{"too late", 9 * time.Second, nil, false, "silence"},
		{"the other instance has answered", time.Second, build(request, 1, nil, opt(50, 10, 98, 0, 85), opt(54, 10, 98, 0, 2)), false, "silence"},
		{"another network comes", 4 * time.Second, nil, true, "silence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			held, told := []string{}, []pxe.Unanswered{}
			d := newDesk(t, withAnswers(&held, &told))
			late := func() string {
				before := len(d.wire.sent)
				d.missed.answer(d.now, d.cfg.Answers, func(x *exchange) { d.answer(t.Context(), x, d.out) })
				d.settle()
				return kinds(d.wire.sent[before:])
			}
			d.none(build(discover, 1, nil, asUEFI...), "")
			if c.then != nil {
				d.none(c.then, "")
			}
			d.now = d.now.Add(c.after)
			if got := late(); got != "silence" {
				t.Errorf("without the network it answers with %s", got)
			}
			if held = []string{"rack1"}; c.isFor {
				held = []string{"far"}
			}
			if got := late(); got != c.want {
				t.Errorf("it answers with %s, want %s", got, c.want)
			}
			if got := late(); got != "silence" {
				t.Errorf("it answers once more, with %s", got)
			}
		})
	}
}

func TestWhatAnotherInstanceAnswersIsCounted(t *testing.T) {
	held, told := []string{}, []pxe.Unanswered{}
	d := newDesk(t, withAnswers(&held, &told))
	d.none(build(discover, 1, nil), "")
	var m dto.Metric
	if err := d.Metrics.Packets.WithLabelValues("discover", "elsewhere").Write(&m); err != nil || m.GetCounter().GetValue() != 1 {
		t.Errorf("counted %v: %v", m.GetCounter(), err)
	}
}

func TestAnotherInstanceIsNoForeignServer(t *testing.T) {
	held, told := []string{"rack1"}, []pxe.Unanswered{}
	d := newDesk(t, withAnswers(&held, &told))
	a := d.bind(1)
	// It took the offer of the other instance, whose leases are ours since then.
	d.none(build(request, 2, nil, opt(50, 10, 98, 0, 90), opt(54, 10, 98, 0, 2)), "")
	d.hears(offer, 2, yiaddr(ip("10.98.0.90")), opt(54, 10, 98, 0, 2))
	d.none(build(decline, 1, nil, opt(50, a.AsSlice()...), opt(54, 10, 98, 0, 2)), "")
	want := []string{
		"dhcp.decline 52:54:00:aa:00:01 52:54:00:aa:00:01 found 10.98.0.85 in use by another machine",
		"conflict 10.98.0.85 rack1 : 52:54:00:aa:00:01 found 10.98.0.85 in use by another machine",
	}
	if diff := cmp.Diff(want, d.boots.lines); diff != "" {
		t.Error(diff)
	}
	if l := d.store.leases[a]; l.State != inventory.LeaseDeclined {
		t.Errorf("the address that a machine has declined is %+v", l)
	}
	if all := d.Foreigners(); len(all) > 0 {
		t.Errorf("foreign servers: %+v", all)
	}
}
