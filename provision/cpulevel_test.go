package provision

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

func TestAHostIsNotInstalledWithAnImageForNewerProcessors(t *testing.T) {
	const says = "image debian-disk needs a processor of level x86-64-v3, and this machine's is x86-64-v2"
	l := newLife(t)
	s := l.add("r1", true)
	needs := func(level string) {
		t.Helper()
		l.write(func(tx inventory.Tx) error {
			i, err := tx.Images().Find("debian-disk")
			if i.CPULevel = level; err != nil {
				return err
			}
			return tx.Images().Update(&i, l.clock)
		})
	}
	has := func(level string) {
		t.Helper()
		h := s.host()
		h.Facts = map[string]string{inventory.FactCPULevel: level}
		l.write(func(tx inventory.Tx) error { return tx.UpdateHost(&h, l.clock) })
	}
	needs(inventory.CPULevel3)
	has(inventory.CPULevel2)
	if _, err := l.engine.Install(t.Context(), s.host().ID, "debian12", ledger.By("test")); !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(ledger.PublicMessage(err), says) {
		t.Errorf("asked for by hand: %v", err)
	}
	needs("")
	l.create(inventory.Machine{Name: "web"})
	l.until("it runs", l.phase("web", inventory.MachineRunning))
	needs(inventory.CPULevel3)
	if _, err := l.engine.Reinstall(t.Context(), "web", ledger.By("test")); !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(ledger.PublicMessage(err), says) {
		t.Errorf("a reinstallation: %v", err)
	}
	has("")
	if _, err := l.engine.Reinstall(t.Context(), "web", ledger.By("test")); err != nil {
		t.Fatal(err)
	}
	has(inventory.CPULevel2) // its inspection comes while it is under way
	l.until("it says why", func() bool { return l.hasCause(says) })
	if s.writes != 1 {
		t.Error("the image was written")
	}
}
