package bmc_test

import (
	"context"
	"fmt"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/inventory"
)

// wallClock waits by the real time.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A program opens a driver, sets the next boot, and switches the machine on. The controller here is simulated; every driver
// has the same methods.
func Example() {
	ctx := context.Background()
	bank := fake.New(fake.Options{})
	defer bank.Close()
	d, err := bank.Open(bmc.Target{BMC: inventory.BMC{System: "node-1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()

	if booter, ok := d.(bmc.Booter); ok { // not every controller can do this
		fmt.Println("boot override:", booter.SetBoot(ctx, bmc.Boot{Device: bmc.PXE}))
	}
	// Converge returns only when the controller reports the wanted state.
	fmt.Println("power on:", bmc.Converge(ctx, d, bmc.On, inventory.PowerOn, wallClock{}, bmc.DefaultPace(func() float64 { return 0 })))
	fmt.Println(d.Power(ctx))
	// Output:
	// boot override: <nil>
	// power on: <nil>
	// on <nil>
}
