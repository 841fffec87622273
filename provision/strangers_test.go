package provision

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/pxe"
)

// shelf keeps logs as the appliance does: beside the database.
type shelf map[string]int

func (s shelf) Add(host, text string) (string, error) {
	s[host] += len(text)
	return fmt.Sprintf("%s/%d", host, len(text)), nil
}

// strangersOnly makes everybody a stranger that no one has accepted.
func (r *rack) strangersOnly() shelf {
	logs := shelf{}
	r.engine.cfg.Logs = logs
	r.engine.cfg.Knows = func(m inventory.MAC) bool {
		isKnown := false
		r.must(r.store.Read(context.Background(), func(tx inventory.Tx) error {
			h, err := tx.FindHostByMAC(m)
			isKnown = err == nil && h.State != inventory.Discovered
			return ledger.IgnoreNotFound(err)
		}))
		return isKnown
	}
	r.engine.outfit()
	return logs
}

func TestStrangersThatStandStillLeaveOneIssueForEachNetworkAndCause(t *testing.T) {
	r := newRack(t)
	r.strangersOnly()
	ours := r.accepted()
	for n := 2; n < 62; n++ {
		r.machine(n).seek()
	}
	r.settle()
	ours.seek()
	r.clock = r.clock.Add(2 * time.Minute)
	r.look()
	open := r.stalledIssues(inventory.IssueStalled)
	if len(open) != 2 {
		t.Fatalf("%d issues: %+v", len(open), open)
	}
	crowd, own := open[0], open[1]
	if len(own.HostIDs) != 1 {
		crowd, own = own, crowd
	}
	if own.HostIDs[0] != ours.host().ID || !strings.Contains(own.Cause, "its boot has stopped") {
		t.Errorf("the accepted host's: %+v", own)
	}
	if crowd.Subnet != "rack" || !strings.Contains(crowd.Cause, "machines that nobody has accepted") || len(crowd.HostIDs) > ledger.GatheringNames || !strings.Contains(crowd.Hint, "forget-strangers") {
		t.Errorf("the strangers': %+v", crowd)
	}
	for n := 2; n < 62; n++ {
		r.machine(n).hear(inventory.EventDHCPAck)
	}
	r.look()
	for _, i := range r.stalledIssues(inventory.IssueStalled) {
		if strings.Contains(i.Key, ledger.OfStrangersKey) {
			t.Errorf("it is open after all went on: %+v", i)
		}
	}
}

func TestAStrangerThatReportsForEverIsHeardWithinItsBudget(t *testing.T) {
	r := newRack(t)
	logs := r.strangersOnly()
	m := r.machine(1)
	_, s := m.boot()
	refused := 0
	for range 1500 {
		err := r.engine.Report(context.Background(), s, m.address(), "", pxe.Report{Step: pxe.ReportProgress, Detail: strings.Repeat("d", 400), Log: strings.Repeat("x", 60<<10)})
		if inventory.IsKind(err, inventory.Unavailable) {
			refused++
		} else {
			r.must(err)
		}
	}
	var rows, bytes int
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) error {
		all, err := tx.ListEvents(inventory.EventFilter{SessionID: s}, 0, 10_000)
		for _, e := range all {
			b, _ := json.Marshal(e)
			rows, bytes = rows+1, bytes+len(b)
		}
		return err
	}))
	if refused < 1000 || rows > 400 || bytes > 512<<10 || logs[""] == 0 || logs[string(m.host().ID)] != 0 {
		t.Errorf("%d refused; %d rows with %d bytes in the database; logs %v", refused, rows, bytes, logs)
	}
	if r.engine.Gate.Shed().OverBudget == 0 {
		t.Error("nobody is told that something was not stored")
	}
	r.clock = r.clock.Add(time.Hour)
	r.must(m.report(s, pxe.ReportProgress))
}

func TestMachinesThatNobodyKnowsAreListedWithinALimitWhateverDoorTheyComeBy(t *testing.T) {
	r := newRack(t)
	r.strangersOnly()
	r.engine.Gate.StrangerN.Store(strangers.StrangersAtMost - 20)
	refused := 0
	for n := range 50 {
		c := r.machine(n).at(pxe.StageIPXE)
		c.Identity = &pxe.Identity{}
		if _, err := r.engine.Script(context.Background(), "", c, base); inventory.IsKind(err, inventory.Unavailable) {
			refused++
		} else {
			r.must(err)
		}
	}
	if n := r.hostN(); n != 20 || refused != 30 || r.engine.Gate.Shed().HostN != 30 {
		t.Errorf("%d hosts, %d refused, %+v", n, refused, r.engine.Gate.Shed())
	}
}

func TestStrangersThatAreSilentAreForgottenAndOthersStay(t *testing.T) {
	r := newRack(t)
	r.strangersOnly()
	r.engine.cfg.KeepStrangers = 24 * time.Hour
	r.engine.outfit()
	ours := r.accepted()
	for n := 2; n < 6; n++ {
		r.machine(n).seek()
	}
	r.settle()
	labelled := r.machine(3).host()
	labelled.Labels = map[string]string{"rack": "7"}
	_, err := r.engine.UpdateHost(context.Background(), labelled, ledger.By("a test"))
	r.must(err)
	r.clock = r.clock.Add(23 * time.Hour)
	r.machine(4).seek()
	r.settle()
	r.clock = r.clock.Add(2 * time.Hour)
	r.must(r.engine.Gate.ExpireStrangers(context.Background()))
	for n, stays := range map[int]bool{1: true, 2: false, 3: true, 4: true, 5: false} {
		isThere := false
		r.must(r.store.Read(context.Background(), func(tx inventory.Tx) error {
			_, err := tx.FindHostByMAC(r.machine(n).mac())
			isThere = err == nil
			return ledger.IgnoreNotFound(err)
		}))
		if isThere != stays {
			t.Errorf("machine %d is there: %t, want %t", n, isThere, stays)
		}
	}
	if got := ours.host(); got.State == inventory.Discovered {
		t.Errorf("%+v", got)
	}
}

func TestADiskThatIsNearlyFullStoresNoEventsButStates(t *testing.T) {
	r := newRack(t)
	r.strangersOnly()
	m := r.accepted()
	before := len(m.events(inventory.EventDHCPDiscover))
	r.engine.Gate.DiskIsTight(true)
	for range 10 {
		m.hear(inventory.EventDHCPDiscover)
	}
	r.settle()
	if n := len(m.events(inventory.EventDHCPDiscover)); n != before || r.engine.Gate.Shed().DiskFull == 0 {
		t.Errorf("%d events, before %d; %+v", n, before, r.engine.Gate.Shed())
	}
	_, err := r.engine.Maintain(context.Background(), m.host().ID, true, ledger.By("a test"))
	r.must(err)
	r.engine.Gate.DiskIsTight(false)
	m.hear(inventory.EventDHCPDiscover)
	r.settle()
	if n := len(m.events(inventory.EventDHCPDiscover)); n != before+1 || !m.host().InMaintenance {
		t.Errorf("%d events once there is room, want %d", n, before+1)
	}
}
