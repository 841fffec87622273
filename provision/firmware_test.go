package provision

import (
	"context"
	"slices"
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
	m := r.accepted()
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

// In a flood iPXE gets no offer in time: neither loader is to blame, and the machine is never sent one of them for ever.
func TestNeitherLoaderIsSentForEver(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	count := map[string]int{}
	for range 20 {
		count[m.refuse()]++
	}
	if count["snponly.efi"] < 8 || count["shimx64.efi"] < 8 {
		t.Errorf("in turn: %v", count)
	}
	told := m.events(inventory.EventHostChanged)
	if !slices.Contains(told, "shimx64.efi was sent 2 times and nothing followed either: from now on it gets snponly.efi again") {
		t.Errorf("the timeline says %q", told)
	}
	for m.host().Facts[inventory.FactLoaderRefused] == "" {
		m.refuse()
	}
	r.write(func(tx inventory.Tx) error {
		h := m.host()
		h.Facts[inventory.FactSecureBoot] = pxe.SecureBootOn
		return tx.UpdateHost(&h, r.clock)
	})
	m.refuse()
	for range 5 {
		if got := m.refuse(); got != "shimx64.efi" {
			t.Errorf("with Secure Boot on it was offered %s", got)
		}
	}
}

func TestALoaderThatWorksAfterAllIsSentAgain(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	for m.host().Facts[inventory.FactLoaderRefused] == "" {
		m.refuse()
	}
	r.clock = r.clock.Add(2 * time.Minute)
	m.dhcp(pxe.StageFirmware) // what it is offered it does not take: it fetches the other one by itself
	r.engine.Transferred(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: "snponly.efi", Bytes: 5, Size: 5})
	s := m.script(m.dhcp(pxe.StageIPXE).File)
	if !strings.HasPrefix(s, "#!ipxe") {
		t.Fatal(s)
	}
	if got := m.refuse(); got != "shimx64.efi" { // offered as the boot before it ends
		t.Errorf("offered %s", got)
	}
	if got := m.host().Facts[inventory.FactLoaderRefused]; got != "" {
		t.Errorf("still refused: %s", got)
	}
	if told := m.events(inventory.EventHostChanged); !slices.Contains(told, "snponly.efi works after all: from now on it gets that again") {
		t.Errorf("the timeline says %q", told)
	}
}

func TestOneRefusalBetweenBootsThatGoOnChangesNothing(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
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
	m := r.accepted()
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
	s, _ := r.engine.sessions.Of(m.mac())
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
	s, _ := r.engine.sessions.Of(m.mac())
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
