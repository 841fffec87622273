package provision

import (
	"context"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// refuse plays a boot whose firmware refuses the loader it was sent.
func (m *machine) refuse() (offered string) {
	m.r.clock = m.r.clock.Add(2 * time.Minute)
	offered = m.dhcp(pxe.StageFirmware).File
	m.r.engine.Transferring(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: offered})
	m.r.engine.Transferred(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: offered, Bytes: 5, Size: 5})
	m.r.settle()
	return offered
}

func TestALoaderThatIsRefusedTwiceIsReplacedByASignedOne(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.machine(1)
	m.boot()
	m.accept()
	for i, want := range []string{"snponly.efi", "snponly.efi", "snponly.efi", "shimx64.efi", "shimx64.efi"} {
		// The third DISCOVER ends the second boot; its OFFER may still name the old loader.
		if got := m.refuse(); got != want && i != 2 {
			t.Errorf("boot %d was offered %s, want %s", i+1, got, want)
		}
	}
	if got := m.host().Facts[inventory.FactLoaderRefused]; got != "snponly.efi" {
		t.Errorf("refused: %q", got)
	}
	var told int
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) error {
		all, err := tx.ListEvents(inventory.EventFilter{HostID: m.host().ID}, 0, 1000)
		for _, e := range all {
			if e.Kind == inventory.EventHostChanged && strings.Contains(e.Detail, "from now on it gets the signed shimx64.efi") {
				told++
			}
		}
		return err
	}))
	if told != 1 {
		t.Errorf("the timeline says so %d times", told)
	}
}

func TestRefusalsAreCountedPastBootsThatEndedBeforeTheirLoader(t *testing.T) {
	boot := func(step string, o inventory.Outcome) inventory.BootSession {
		return inventory.BootSession{Step: step, Outcome: o, Firmware: inventory.UEFI}
	}
	refused := boot(inventory.EventLoaderSent, inventory.OutcomeAbandoned)
	cut := boot(inventory.EventDHCPOffer, inventory.OutcomeAbandoned) // HTTP Boot, the firmware's next try, as the machine was reset
	bios := refused
	bios.Firmware = inventory.BIOS
	for i, c := range []struct {
		latest []inventory.BootSession
		want   bool
	}{
		{nil, false},
		{[]inventory.BootSession{refused}, false},
		{[]inventory.BootSession{refused, refused}, true},
		{[]inventory.BootSession{refused, cut, refused}, true},
		{[]inventory.BootSession{cut, refused, cut, cut, refused, cut}, true},
		{[]inventory.BootSession{cut, cut, cut}, false},
		{[]inventory.BootSession{refused, boot(inventory.EventScriptAsked, inventory.OutcomeAbandoned), refused}, false},
		{[]inventory.BootSession{refused, boot(inventory.EventReported, inventory.OutcomeArrived), refused}, false},
		{[]inventory.BootSession{bios, bios}, false},
	} {
		if got := loaderRefused(c.latest); got != c.want {
			t.Errorf("case %d: refused %t, want %t", i, got, c.want)
		}
	}
}

func TestOneRefusalBetweenBootsThatGoOnChangesNothing(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.machine(1)
	m.boot()
	m.accept()
	for range 3 {
		m.refuse()
		_, s := m.boot()
		r.must(m.report(s, pxe.ReportUp))
	}
	if got := m.refuse(); got != "snponly.efi" || m.host().Facts[inventory.FactLoaderRefused] != "" {
		t.Errorf("offered %s, refused %q", got, m.host().Facts[inventory.FactLoaderRefused])
	}
}

func TestGRUBTellsOfSecureBootAndGetsItsOwnWords(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.machine(1)
	m.boot()
	m.accept()
	r.clock = r.clock.Add(2 * time.Minute)
	m.dhcp(pxe.StageFirmware)
	c, err := pxe.ParseAsk("mac=" + string(m.mac()) + "&cpu=x86_64&platform=efi&lockdown=y&serial=SN7")
	r.must(err)
	c.Address, c.Server = m.address(), m.at(pxe.StageOS).Server
	out, err := r.engine.Script(context.Background(), "", c, base)
	r.must(err)
	if !strings.Contains(string(out), "if linux '(tftp,10.0.0.1)/boot/") {
		t.Errorf("script:\n%s", out)
	}
	if h := m.host(); h.Facts[inventory.FactSecureBoot] != pxe.SecureBootOn || h.Serial != "SN7" || h.State != inventory.Installing {
		t.Errorf("host %s, facts %v, serial %s", h.State, h.Facts, h.Serial)
	}
	s, _ := r.engine.sessions.of(m.mac())
	files, hasConfig, err := r.engine.Initrds(context.Background(), s.ID, m.address())
	if err != nil || len(files) != 0 || hasConfig {
		t.Errorf("initrds %v, %v, %v", files, hasConfig, err)
	}
	if got := m.refuse(); got != "shimx64.efi" {
		t.Errorf("its next loader is %s", got)
	}
}

func TestWhatLoadersLookForIsNoFailure(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	m.dhcp(pxe.StageFirmware)
	s, _ := r.engine.sessions.of(m.mac())
	for _, name := range []string{"revocations_sku.efi", "/grub/x86_64-efi/command.lst", "pxelinux.cfg/C0A80001"} {
		r.engine.Transferred(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: name, Err: context.Canceled})
	}
	r.engine.Transferred(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: "grub/grub.cfg", Bytes: 5, Size: 5})
	r.settle()
	for _, k := range r.kinds(s.ID) {
		if strings.HasPrefix(k, "artefact.") {
			t.Errorf("%s in the timeline", k)
		}
	}
}
