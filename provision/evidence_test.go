package provision

import (
	"context"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/boot"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
)

// up is a machine whose live system, with or without secrets, has reported up.
func up(t *testing.T, config string, at string) (*rack, *machine) {
	t.Helper()
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: config})
	m := r.machine(1)
	m.port = at
	_, s := m.arrive()
	if _, err := m.ask(s, "user-data"); err != nil {
		t.Fatal(err)
	}
	r.must(m.report(s, pxe.ReportUp))
	if h := m.host(); h.State != inventory.Active {
		t.Fatalf("the host is %s", h.State)
	}
	r.clock = r.clock.Add(time.Hour)
	return r, m
}

const noSecret = "host: {timezone: Europe/Berlin}"

// wantHeld expects that a boot got nothing, and says so.
func (m *machine) wantHeld(script string, s inventory.SessionID) {
	m.r.t.Helper()
	m.wantHeldIn(script, s, inventory.Active)
}

// wantHeldIn is wantHeld of a host in another state.
func (m *machine) wantHeldIn(script string, s inventory.SessionID, state inventory.State) {
	m.r.t.Helper()
	m.r.settle()
	if strings.Contains(script, "kernel ") || !strings.Contains(script, "slipway host confirm "+m.host().Name) {
		m.r.t.Errorf("script:\n%s", script)
	}
	if got, err := m.ask(s, "user-data"); err == nil || strings.Contains(got, canary) {
		m.r.t.Errorf("its secrets were given: %v", err)
	}
	if h := m.host(); h.State != state {
		m.r.t.Errorf("the host is %s", h.State)
	}
	m.wantUnconfirmed(true)
}

func (m *machine) wantUnconfirmed(is bool) {
	m.r.t.Helper()
	has := false
	for _, i := range m.r.openIssues() {
		has = has || i.Type == inventory.IssueUnconfirmed && i.HostIDs[0] == m.host().ID && i.Hint != ""
	}
	if has != is {
		m.r.t.Errorf("issue %s is open: %v; %+v", inventory.IssueUnconfirmed, has, m.r.openIssues())
	}
}

// wantGiven expects that a boot counts as one of the host.
func (m *machine) wantGiven(script string, s inventory.SessionID, proof inventory.Proof) {
	m.r.t.Helper()
	if got := m.r.session(s); !strings.Contains(script, "kernel ") || got.Proof != proof {
		m.r.t.Errorf("proof %q, want %q; script:\n%s", got.Proof, proof, script)
	}
	if _, err := m.ask(s, "user-data"); err != nil {
		m.r.t.Error(err)
	}
	if h := m.host(); h.State != inventory.Installing {
		m.r.t.Errorf("the host is %s", h.State)
	}
}

func TestASecondMachineWithTheMACOfARunningHostGetsNoSecrets(t *testing.T) {
	r, m := up(t, withSecret, "")
	m.uuid = "deadbeef-0000-4000-8000-000000000001"
	before := m.host()
	script, s := m.boot()
	m.wantHeld(script, s)
	r.must(m.report(s, pxe.ReportFailed)) // what it reports is noted, and no more
	m.wantHeld(script, s)
	if h := m.host(); h.UUID != before.UUID || h.Serial != before.Serial {
		t.Errorf("the host says by now that it is %s", h.UUID)
	}
	script, s = m.boot()
	m.wantHeld(script, s)
	if open := r.openIssues(); open[0].Severity != inventory.SeverityError || !strings.Contains(open[0].Cause, m.uuid) {
		t.Errorf("issues %+v", open)
	}
}

func TestAPersonConfirmsThatARebootIsTheHosts(t *testing.T) {
	r, m := up(t, withSecret, "")
	script, s := m.boot()
	m.wantHeld(script, s)
	_, err := r.engine.Confirm(context.Background(), m.host().ID, ledger.By("alice"))
	r.must(err)
	m.wantUnconfirmed(false)
	m.wantGiven(m.script(base+"/boot/"+string(s)+"/ask"), s, inventory.ProofPerson)
	r.must(m.report(s, pxe.ReportUp))
	r.clock = r.clock.Add(time.Minute)
	script, s = m.boot() // the word counted for that boot alone
	m.wantHeld(script, s)
}

func TestAConfirmationBeforehandCountsForOneBootWithinAnHour(t *testing.T) {
	r, m := up(t, withSecret, "")
	confirm := func() {
		_, err := r.engine.Confirm(context.Background(), m.host().ID, ledger.By("alice"))
		r.must(err)
	}
	confirm()
	script, s := m.boot()
	m.wantGiven(script, s, inventory.ProofPerson)
	r.must(m.report(s, pxe.ReportUp))
	script, s = m.boot()
	m.wantHeld(script, s)
	r.clock = r.clock.Add(time.Hour)
	script, s = m.boot()
	m.wantHeld(script, s)
	confirm() // of the boot that waits
	m.wantGiven(m.script(base+"/boot/"+string(s)+"/ask"), s, inventory.ProofPerson)
	r.must(m.report(s, pxe.ReportUp))
	r.clock = r.clock.Add(time.Minute)
	confirm()
	r.clock = r.clock.Add(boot.ConfirmedFor)
	script, s = m.boot()
	m.wantHeld(script, s)
}

func TestARunningHostWithoutSecretsBootsOnAndStaysActive(t *testing.T) {
	r, m := up(t, noSecret, "")
	script, s := m.boot()
	if !strings.Contains(script, "kernel ") {
		t.Fatalf("script:\n%s", script)
	}
	if _, err := m.ask(s, "user-data"); err != nil {
		t.Error(err)
	}
	m.wantUnconfirmed(true)
	r.must(m.report(s, pxe.ReportFailed))
	if h := m.host(); h.State != inventory.Active {
		t.Errorf("the host is %s", h.State)
	}
}

func TestTheSwitchPortShowsThatARebootIsTheHosts(t *testing.T) {
	r, m := up(t, withSecret, "ge-0/0/5@rack7")
	if h := m.host(); h.NICs[0].Port != "ge-0/0/5@rack7" {
		t.Fatalf("its port is %q", h.NICs[0].Port)
	}
	script, s := m.boot()
	m.wantGiven(script, s, inventory.ProofPort)
	r.must(m.report(s, pxe.ReportUp))
	m.wantUnconfirmed(false)
	m.port = "ge-0/0/9@rack7"
	script, s = m.boot()
	m.wantHeld(script, s)
	if h := m.host(); h.NICs[0].Port != "ge-0/0/5@rack7" {
		t.Errorf("the port was learned anew: %q", h.NICs[0].Port)
	}
	_, err := r.engine.Confirm(context.Background(), m.host().ID, ledger.By("alice"))
	r.must(err)
	m.wantGiven(m.script(base+"/boot/"+string(s)+"/ask"), s, inventory.ProofPerson)
	if h := m.host(); h.NICs[0].Port != "ge-0/0/9@rack7" {
		t.Errorf("a person has confirmed the new port, and it is %q", h.NICs[0].Port)
	}
}

func TestAnotherSwitchPortIsRefusedWithoutSecretsToo(t *testing.T) {
	r, m := up(t, noSecret, "ge-0/0/5@rack7")
	m.port = "ge-0/0/9@rack7"
	script, s := m.boot()
	m.wantHeld(script, s)
	m.port = "ge-0/0/5@rack7"
	if script, _ := m.boot(); !strings.Contains(script, "kernel ") {
		t.Errorf("the host itself on its port:\n%s", script)
	}
	_ = r
}

func TestAPortThatHostsShareShowsNothing(t *testing.T) {
	r, m := up(t, withSecret, "ge-0/0/5@rack7")
	other := r.machine(2)
	other.port = m.port
	other.boot()
	script, s := m.boot()
	m.wantHeld(script, s)
}

func TestAControllerShowsThatAHostWasOff(t *testing.T) {
	r, m := up(t, withSecret, "")
	power := inventory.PowerOn
	r.engine.cfg.OpenBMC = func(bmc.Target) (bmc.Driver, error) { return says{&power}, nil }
	r.engine.outfit()
	r.write(func(tx inventory.Tx) error {
		return tx.SaveBMC(&inventory.BMC{HostID: m.host().ID, Driver: inventory.Redfish, Address: "https://10.9.9.9"}, r.clock)
	})
	answer := func(s inventory.SessionID) string {
		r.t.Helper()
		select {
		case id := <-r.engine.Glances.Wanted:
			r.engine.Glances.Answered(id, r.engine.PowerNow(context.Background(), id))
		default:
			t.Error("its controller is not asked")
		}
		return m.script(base + "/boot/" + string(s) + "/ask")
	}
	script, s := m.boot()
	m.wantHeld(script, s)
	if !strings.Contains(script, "controller") {
		t.Errorf("script:\n%s", script)
	}
	m.wantHeld(answer(s), s) // it is on, as ever: that shows nothing

	power = inventory.PowerOff
	script, s = m.boot()
	m.wantHeld(script, s)
	if script = answer(s); !strings.Contains(script, "is off") {
		t.Errorf("a machine that boots while the host is off:\n%s", script)
	}
	m.wantHeld(script, s)

	power = inventory.PowerOn // somebody has pressed its button
	_, s = m.boot()
	m.wantGiven(answer(s), s, inventory.ProofPower)
	m.wantUnconfirmed(false)
}

// says is a controller that only tells the power.
type says struct{ is *inventory.PowerState }

func (s says) Power(context.Context) (inventory.PowerState, error) { return *s.is, nil }
func (s says) SetPower(context.Context, bmc.Action) error          { return nil }
func (s says) Close() error                                        { return nil }

// told is a controller that tells when its machine restarted, too.
type told struct {
	says
	r           *rack
	restartedAt *time.Time
}

func (d told) SinceRestart(context.Context) (time.Duration, error) {
	return d.r.clock.Sub(*d.restartedAt), nil
}

// A live system that restarts itself is never seen off.
func TestAControllerThatTellsOfARestartShowsThatARebootIsTheHosts(t *testing.T) {
	r, m := up(t, withSecret, "")
	power, restarted := inventory.PowerOn, r.clock.Add(-30*time.Hour)
	r.engine.cfg.OpenBMC = func(bmc.Target) (bmc.Driver, error) { return told{says{&power}, r, &restarted}, nil }
	r.engine.outfit()
	r.write(func(tx inventory.Tx) error {
		return tx.SaveBMC(&inventory.BMC{HostID: m.host().ID, Driver: inventory.Redfish, Address: "https://10.9.9.9"}, r.clock)
	})
	answer := func(s inventory.SessionID) string {
		r.t.Helper()
		id := <-r.engine.Glances.Wanted
		r.engine.Glances.Answered(id, r.engine.PowerNow(context.Background(), id))
		return m.script(base + "/boot/" + string(s) + "/ask")
	}
	_, s := m.boot() // a second machine with its MAC: the host itself runs on
	m.wantHeld(answer(s), s)

	r.clock = r.clock.Add(time.Hour)
	restarted = r.clock.Add(-90 * time.Second)
	_, s = m.boot()
	m.wantGiven(answer(s), s, inventory.ProofPower)
	m.wantUnconfirmed(false)
	r.must(m.report(s, pxe.ReportUp))

	r.clock = r.clock.Add(5 * time.Minute)
	_, s = m.boot() // that restart has been used
	m.wantHeld(answer(s), s)
}

func TestSwitchingOnAHostThatIsOnOrdersNoBoot(t *testing.T) {
	r, m := up(t, withSecret, "")
	r.write(func(tx inventory.Tx) error {
		op := inventory.Operation{
			ID: "01K00000000000000000000078", HostID: m.host().ID, Kind: inventory.OpPower, State: inventory.OpDone, Step: inventory.StepSet,
			Params: operation.Params{Action: bmc.On, WasSo: true}.Encode(), StartedAt: r.clock, EndedAt: r.clock,
		}
		return tx.CreateOperation(&op, r.clock)
	})
	script, s := m.boot()
	m.wantHeld(script, s)
}

func TestARestartThatWasOrderedNeedsNoOtherProof(t *testing.T) {
	r, m := up(t, withSecret, "")
	r.write(func(tx inventory.Tx) error {
		op := inventory.Operation{
			ID: "01K00000000000000000000077", HostID: m.host().ID, Kind: inventory.OpPower, State: inventory.OpDone, Step: inventory.StepSet,
			Params: operation.Params{Action: bmc.Cycle}.Encode(), StartedAt: r.clock, EndedAt: r.clock,
		}
		return tx.CreateOperation(&op, r.clock)
	})
	script, s := m.boot()
	m.wantGiven(script, s, inventory.ProofOrder)
	r.must(m.report(s, pxe.ReportUp))
	script, s = m.boot()
	m.wantHeld(script, s)
}

func TestAnIsolatedNetworkAsksNobodyWhoItIs(t *testing.T) {
	r, m := up(t, withSecret, "")
	r.write(func(tx inventory.Tx) error {
		p, err := tx.Profiles().Find("live")
		if err != nil {
			return err
		}
		p.Isolated = true
		return tx.Profiles().Update(&p, r.clock)
	})
	script, s := m.boot()
	m.wantGiven(script, s, "")
	m.wantUnconfirmed(false)
}

// The level is for an admin to choose: an operator who writes isolated lifts no guard.
func TestAnOperatorsIsolatedProfileLiftsNoProof(t *testing.T) {
	r, m := up(t, withSecret, "")
	r.write(func(tx inventory.Tx) error {
		p, err := tx.Profiles().Find("live")
		if err != nil {
			return err
		}
		p.Isolated, p.Saved = true, inventory.Saved{SavedBy: "user op"}
		return tx.Profiles().Update(&p, r.clock)
	})
	script, s := m.boot()
	if strings.Contains(script, "kernel ") {
		t.Errorf("script:\n%s", script)
	}
	if got, err := m.ask(s, "user-data"); err == nil || strings.Contains(got, canary) {
		t.Errorf("its secrets were given: %v", err)
	}
}

func TestASystemThatNeverReportsRunsAllTheSame(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: withSecret})
	m := r.machine(1)
	_, s := m.arrive()
	if _, err := m.ask(s, "user-data"); err != nil {
		t.Fatal(err)
	}
	if script, s := m.boot(); !strings.Contains(script, "kernel ") { // it starts over at once
		t.Errorf("script of %s:\n%s", s, script)
	}
	r.clock = r.clock.Add(time.Hour)
	script, s := m.boot()
	if strings.Contains(script, "kernel ") {
		t.Errorf("script:\n%s", script)
	}
	if _, err := m.ask(s, "user-data"); err == nil {
		t.Error("an hour later anybody with its MAC is given its secrets")
	}
	m.wantUnconfirmed(true)
}

func TestADiskThatBootsIsNoAlarm(t *testing.T) {
	r, m := up(t, withSecret, "")
	_, err := r.engine.Maintain(context.Background(), m.host().ID, true, ledger.By("a test"))
	r.must(err)
	if script, _ := m.boot(); strings.Contains(script, "kernel ") {
		t.Errorf("script:\n%s", script)
	}
	m.wantUnconfirmed(false)
}

func TestOnlyAnAcceptedHostIsConfirmed(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	m.boot()
	if _, err := r.engine.Confirm(context.Background(), m.host().ID, ledger.By("alice")); !inventory.IsKind(err, inventory.Conflict) || inventory.HintOf(err) == "" {
		t.Errorf("a stranger is confirmed: %v", err)
	}
}

// silent is a host with a live system that has its secrets and never reports up: it stays in one state.
func silent(t *testing.T) (*rack, *machine) {
	t.Helper()
	r, m := up(t, withSecret, "")
	_, err := r.engine.Confirm(context.Background(), m.host().ID, ledger.By("alice"))
	r.must(err)
	m.given(inventory.ProofPerson)
	r.clock = r.clock.Add(time.Hour)
	return r, m
}

// given is a boot that gets its secrets.
func (m *machine) given(proof inventory.Proof) {
	m.r.t.Helper()
	script, s := m.boot()
	if strings.Contains(script, "controller") {
		script = m.answered(s)
	}
	m.wantGiven(script, s, proof)
	if _, err := m.ask(s, "user-data"); err != nil {
		m.r.t.Fatal(err)
	}
}

// answered is what a boot is told once the controller of its host has said how its power is.
func (m *machine) answered(s inventory.SessionID) string {
	m.r.t.Helper()
	select {
	case id := <-m.r.engine.Glances.Wanted:
		m.r.engine.Glances.Answered(id, m.r.engine.PowerNow(context.Background(), id))
	default:
	}
	return m.script(base + "/boot/" + string(s) + "/ask")
}

// TestAPowerOffProvesTheBootThatFollowsItOnly: the power of a live system that never reports up was cut once. A second machine that
// boots under its MAC later has no part in that.
func TestAPowerOffProvesTheBootThatFollowsItOnly(t *testing.T) {
	for name, hasBooted := range map[string]bool{"it booted from the network": true, "it booted its disk": false} {
		t.Run(name, func(t *testing.T) {
			r, m := silent(t)
			power := inventory.PowerOn
			r.engine.cfg.OpenBMC = func(bmc.Target) (bmc.Driver, error) { return says{&power}, nil }
			r.engine.outfit()
			r.write(func(tx inventory.Tx) error {
				return tx.SaveBMC(&inventory.BMC{HostID: m.host().ID, Driver: inventory.Redfish, Address: "https://10.9.9.9"}, r.clock)
			})
			for _, power = range []inventory.PowerState{inventory.PowerOn, inventory.PowerOff, inventory.PowerOn} {
				r.engine.PowerNow(context.Background(), m.host().ID)
				r.clock = r.clock.Add(time.Minute)
			}
			if hasBooted {
				m.given(inventory.ProofPower)
				m.given(inventory.ProofPower) // firmware that begins again
			}
			r.clock = r.clock.Add(25 * time.Minute)
			script, s := m.boot()
			m.wantHeldIn(script, s, inventory.Installing)
			m.wantHeldIn(m.answered(s), s, inventory.Installing)
		})
	}
}

func TestAnOrderOfPowerProvesTheBootThatItBegan(t *testing.T) {
	r, m := silent(t)
	r.write(func(tx inventory.Tx) error {
		op := inventory.Operation{
			ID: "01K00000000000000000000077", HostID: m.host().ID, Kind: inventory.OpPower, State: inventory.OpDone, Step: inventory.StepSet,
			Params: operation.Params{Action: bmc.Cycle}.Encode(), StartedAt: r.clock, EndedAt: r.clock,
		}
		return tx.CreateOperation(&op, r.clock)
	})
	m.given(inventory.ProofOrder)
	r.clock = r.clock.Add(20 * time.Minute)
	script, s := m.boot() // a second machine, within the half hour that an order counts
	m.wantHeldIn(script, s, inventory.Installing)
}
