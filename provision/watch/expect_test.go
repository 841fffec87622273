package watch

import (
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

func TestAMachineThatWasSentToItsDiskOwesNothing(t *testing.T) {
	for _, boot := range []pxe.Boot{pxe.BootDisk, pxe.BootIgnore, pxe.BootPark} {
		s := inventory.BootSession{HostID: "h", Boot: string(boot), Step: inventory.EventDHCPDiscover}
		if _, waits := waitsFor(&s); waits {
			t.Errorf("something is expected after %s", boot)
		}
	}
	ended := inventory.BootSession{HostID: "h", Step: inventory.EventDHCPAck, EndedAt: time.Unix(1, 0)}
	if _, waits := waitsFor(&ended); waits {
		t.Error("something is expected of a boot that is over")
	}
	if _, waits := waitsFor(&inventory.BootSession{HostID: "h", Step: inventory.EventDHCPAck}); !waits {
		t.Error("nothing is expected after an address was given")
	}
}

// While a file is being sent nothing is late, and when it has been sent for too long the deadline counts from before.
func TestNothingIsLateWhileAFileIsSent(t *testing.T) {
	clock := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	w := &Expectations{cfg: ExpectConfig{Now: now}}
	r := session.New(now, func(s *inventory.BootSession, at session.Step) (time.Time, bool) {
		_, by, waits := w.next(s, at)
		return by, waits
	})
	s, _, _ := r.Heard(pxe.Client{MAC: "52:54:00:00:00:01", Stage: pxe.StageFirmware}, inventory.EventDHCPDiscover)
	r.SetHost("h1", s.MAC)
	s, _, _ = r.Heard(pxe.Client{MAC: s.MAC}, inventory.EventLoaderStarted)
	r.Loading(&s, "ipxe.efi")
	late := func() bool {
		l, _, _ := r.Take()
		return len(l) == 1
	}
	for _, passes := range []time.Duration{session.LoadingFor / 2, session.LoadingFor/2 - time.Second} {
		if clock = clock.Add(passes); late() {
			t.Fatalf("late at %s while its loader is sent", clock)
		}
	}
	if clock = clock.Add(time.Second + 1); !late() {
		t.Error("not late although nobody sends it anything")
	}
	r.Loading(&s, "ipxe.efi")
	r.Loaded(&s, "ipxe.efi")
	if clock = clock.Add(1); !late() {
		t.Error("not late although the file ended")
	}
}

func TestDeadlinesOfBootsAreThoseOfTheConfiguration(t *testing.T) {
	w := &Expectations{cfg: ExpectConfig{Now: time.Now, Deadlines: map[string]time.Duration{inventory.EventDHCPAck: 2 * time.Second}}}
	s := inventory.BootSession{HostID: "h", Step: inventory.EventDHCPAck}
	if x, by, _ := w.next(&s, session.Step{}); x.within != 2*time.Second || !by.Equal(s.LastAt.Add(2*time.Second)) {
		t.Errorf("sign after the address: %+v by %s", x, by)
	}
}
