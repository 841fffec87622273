package fake_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/bmctest"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/inventory"
)

const password = "open-sesame-77"

func target(system string) bmc.Target {
	return bmc.Target{BMC: inventory.BMC{Driver: inventory.FakeBMC, System: system, Username: "admin"}, Password: password}
}

func open(t *testing.T, b *fake.Bank, to bmc.Target) bmc.Driver {
	t.Helper()
	d, err := b.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func bank(t *testing.T, o fake.Options) *fake.Bank {
	o.Password = password
	b := fake.New(o)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestFakePassesTheConformanceSuite(t *testing.T) {
	for name, o := range map[string]fake.Options{
		"at once":             {},
		"slow to be switched": {Delay: time.Millisecond, PowerFor: 30 * time.Millisecond, ShutdownFor: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			broken := func(f fake.Fault) func(*testing.T) bmc.Driver {
				return func(t *testing.T) bmc.Driver {
					b := bank(t, o)
					b.Break("m", f)
					return open(t, b, target("m"))
				}
			}
			bmctest.Run(t, bmctest.Case{
				Password: password,
				Open: func(t *testing.T, is inventory.PowerState) bmc.Driver {
					to := target("m")
					to.Options = map[string]string{"power": string(is)}
					return open(t, bank(t, o), to)
				},
				Boots: []bmc.Boot{
					{Device: bmc.PXE},
					{Device: bmc.Disk, IsPersistent: true},
					{Device: bmc.PXE, Mode: inventory.UEFI},
					{Device: bmc.HTTP, URI: "http://192.0.2.1/ipxe.efi", Mode: inventory.UEFI},
					{Device: bmc.Virtual},
					{Device: bmc.Setup},
				},
				UsesUpBoot:  true,
				MediaURL:    "http://192.0.2.1/install.iso",
				Unreachable: broken(fake.Unreachable),
				Silent:      broken(fake.Slow),
				Unauthorized: func(t *testing.T) bmc.Driver {
					to := target("m")
					to.Password = "wrong"
					return open(t, bank(t, o), to)
				},
			})
		})
	}
}

func TestFaultsDoWhatTheySay(t *testing.T) {
	type result struct {
		Kind  inventory.Kind // of the order's error
		Is    inventory.PowerState
		Reads inventory.PowerState
	}
	for _, c := range []struct {
		name   string
		fault  fake.Fault
		is     inventory.PowerState
		action bmc.Action
		want   result
	}{
		{"an order that goes well", fake.Fine, inventory.PowerOff, bmc.On, result{"", inventory.PowerOn, inventory.PowerOn}},
		{"nothing happens behind an unreachable controller", fake.Unreachable, inventory.PowerOff, bmc.On, result{inventory.Unavailable, inventory.PowerOff, inventory.PowerUnknown}},
		{"an ignored order seems to go well", fake.Ignored, inventory.PowerOff, bmc.On, result{"", inventory.PowerOff, inventory.PowerOff}},
		{"a liar obeys and reports the opposite", fake.Lies, inventory.PowerOff, bmc.On, result{"", inventory.PowerOn, inventory.PowerOff}},
		{"nothing happens without credentials", fake.Unauthorized, inventory.PowerOn, bmc.Off, result{inventory.Unauthorized, inventory.PowerOn, inventory.PowerUnknown}},
		{"half a cycle is off, with an error", fake.HalfApplied, inventory.PowerOn, bmc.Cycle, result{inventory.Unavailable, inventory.PowerOff, inventory.PowerOff}},
		{"half an off is off, with an error", fake.HalfApplied, inventory.PowerOn, bmc.Off, result{inventory.Unavailable, inventory.PowerOff, inventory.PowerOff}},
		{"nothing happens behind a busy controller", fake.Busy, inventory.PowerOn, bmc.Off, result{inventory.Unavailable, inventory.PowerOn, inventory.PowerUnknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bank(t, fake.Options{First: c.is})
			d := open(t, b, target("m"))
			b.Break("m", c.fault)
			var got result
			if err := d.SetPower(t.Context(), c.action); err != nil {
				got.Kind = bmc.KindOf(err)
			}
			got.Is = b.Power("m")
			got.Reads, _ = d.Power(t.Context())
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScriptedFaultsComeOnceAndInOrder(t *testing.T) {
	b := bank(t, fake.Options{})
	d := open(t, b, target("m"))
	b.Script("m", fake.Busy, fake.Fine, fake.Unreachable)
	var got []bool
	for range 4 {
		_, err := d.Power(t.Context())
		got = append(got, err == nil)
	}
	if diff := cmp.Diff([]bool{false, true, false, true}, got); diff != "" {
		t.Error(diff)
	}
}

// outcomes makes n calls to each of several controllers, all at once, and writes down which went well.
func outcomes(t *testing.T, seed uint64) map[string]string {
	b := bank(t, fake.Options{Seed: seed, Rates: map[fake.Fault]float64{fake.Busy: 0.2, fake.Unreachable: 0.2}})
	var wg sync.WaitGroup
	var mu sync.Mutex
	all := map[string]string{}
	for i := range 20 {
		wg.Go(func() {
			system := fmt.Sprintf("m%d", i)
			d := open(t, b, target(system))
			text := ""
			for range 40 {
				if _, err := d.Power(t.Context()); err != nil {
					text += "x"
				} else {
					text += "."
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all[system] = text
		})
	}
	wg.Wait()
	return all
}

func TestChanceIsRepeatedByItsSeedWhateverOthersDo(t *testing.T) {
	first := outcomes(t, 7)
	if diff := cmp.Diff(first, outcomes(t, 7)); diff != "" {
		t.Errorf("the same seed gives other faults:\n%s", diff)
	}
	if cmp.Equal(first, outcomes(t, 8)) {
		t.Error("another seed gives the same faults")
	}
	if first["m0"] == first["m1"] {
		t.Error("two controllers meet the same faults")
	}
	bad := 0
	for _, text := range first {
		for _, r := range text {
			if r == 'x' {
				bad++
			}
		}
	}
	if bad < 240 || bad > 400 {
		t.Errorf("%d of 800 calls failed; the rates say 320", bad)
	}
}

type heard struct {
	From, To inventory.PowerState
	Boot     bmc.Device
}

func TestChangesAreToldInOrderWithWhatIsBooted(t *testing.T) {
	var got []heard
	var b *fake.Bank
	b = bank(t, fake.Options{Changed: func(system string, from, to inventory.PowerState, boot bmc.Boot) {
		got = append(got, heard{from, to, boot.Device})
		if boot.Device == bmc.PXE { // what was netbooted installs itself and restarts: the listener calls back
			b.Reboot(system)
		}
	}})
	d := open(t, b, target("m"))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(d.(bmc.Booter).SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}))
	must(d.SetPower(t.Context(), bmc.On))
	must(d.SetPower(t.Context(), bmc.On))
	must(d.SetPower(t.Context(), bmc.Cycle))
	b.Halt("m")
	b.Reboot("m")
	want := []heard{
		{"off", "on", bmc.PXE},
		{"on", "on", bmc.None},
		{"on", "off", ""},
		{"off", "on", bmc.None},
		{"on", "off", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// bubble is the clock of a synctest bubble.
type bubble struct{}

func (bubble) Now() time.Time { return time.Now() }

func (bubble) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func TestConvergeSettlesMachinesThatFailAtRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bank(t, fake.Options{
			Clock: bubble{}, Seed: 1, Delay: 300 * time.Millisecond, PowerFor: 4 * time.Second, SlowFor: 20 * time.Second,
			Rates: map[fake.Fault]float64{fake.Unreachable: 0.05, fake.Busy: 0.1, fake.Ignored: 0.1, fake.Slow: 0.05, fake.HalfApplied: 0.05},
		})
		defer func() { _ = b.Close() }() // before the bubble ends
		pace := bmc.DefaultPace(func() float64 { return 0.5 })
		pace.Tries = 8
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				system := fmt.Sprintf("m%d", i)
				d := open(t, b, target(system))
				for _, to := range []struct {
					a    bmc.Action
					want inventory.PowerState
				}{{bmc.On, inventory.PowerOn}, {bmc.Off, inventory.PowerOff}} {
					if err := bmc.Converge(t.Context(), d, to.a, to.want, bubble{}, pace); err != nil {
						t.Errorf("%s: %v", system, err)
					}
					if got := b.Power(system); got != to.want {
						t.Errorf("%s is %s after %s", system, got, to.a)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestAnOrderIsNotBegunAgainWhileItIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bank(t, fake.Options{Clock: bubble{}, PowerFor: 10 * time.Second})
		defer func() { _ = b.Close() }()
		d := open(t, b, target("m"))
		for range 3 {
			if err := d.SetPower(t.Context(), bmc.On); err != nil {
				t.Fatal(err)
			}
			time.Sleep(4 * time.Second)
		}
		if got := b.Power("m"); got != inventory.PowerOn {
			t.Errorf("the machine is %s 12s after an order that takes 10s", got)
		}
		if err := d.SetPower(t.Context(), bmc.Off); err != nil {
			t.Fatal(err)
		}
		if err := d.SetPower(t.Context(), bmc.On); err != nil { // it is on still: this takes the off back
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := b.Power("m"); got != inventory.PowerOn {
			t.Errorf("the machine is %s though the newest order was on", got)
		}
	})
}

func TestPasswordsAreRotated(t *testing.T) {
	b := bank(t, fake.Options{})
	old := open(t, b, target("m"))
	if err := old.(bmc.UserManager).SetPassword(t.Context(), "admin", "another"); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Power(t.Context()); bmc.KindOf(err) != inventory.Unauthorized {
		t.Errorf("the old password still works: %v", err)
	}
	to := target("m")
	to.Password = "another"
	if err := open(t, b, to).(bmc.UserManager).CheckCredentials(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOptionsAreStrict(t *testing.T) {
	for name, o := range map[string]map[string]string{
		"unknown":         {"colour": "blue"},
		"power unknown":   {"power": "unknown"},
		"negative delay":  {"delay": "-1s"},
		"fault of no one": {"fault": "sad"},
	} {
		to := target("m")
		to.Options = o
		if _, err := bank(t, fake.Options{}).Open(to); bmc.KindOf(err) != inventory.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := bank(t, fake.Options{}).Open(bmc.Target{}); bmc.KindOf(err) != inventory.Invalid {
		t.Errorf("no system: %v", err)
	}
}

func TestTenThousandControllersAreCheap(t *testing.T) {
	b := bank(t, fake.Options{})
	begun := time.Now()
	for i := range 10_000 {
		d := open(t, b, target(fmt.Sprintf("m%d", i)))
		if err := d.SetPower(t.Context(), bmc.On); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("10,000 controllers took %s", took)
	}
}

func BenchmarkCall(b *testing.B) {
	bank := fake.New(fake.Options{Rates: map[fake.Fault]float64{fake.Busy: 0.1}})
	d, err := bank.Open(target("m"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_, _ = d.Power(b.Context())
	}
}
