package cli

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"slipway.dev/slipway/inventory"
)

// DecodeDuration reads a flag such as 90s, 12h or 30d.
func DecodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := inventory.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it as 90s, 10m, 12h or 30d", text)
	}
	target.SetInt(int64(d))
	return nil
}

// Set stores the value of a flag in a field. A flag that nobody gave is nil and leaves the field as it is.
func Set[T any](field *T, v *T) {
	if v != nil {
		*field = *v
	}
}

// ParseAddr reads the IP address of a flag. The error names the flag and shows how to write one.
func ParseAddr(flag, text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, Usage("write it as 10.0.0.1", "%s %q is not an address", flag, text)
	}
	return a, nil
}

// ParseCIDR reads the network of --cidr, such as 10.0.0.0/24.
func ParseCIDR(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, Usage("write it as 10.0.0.0/24", "--cidr %q is not a network", text)
	}
	return p, nil
}

// WaitFlag is --wait: alone it waits until the end, --wait=30m no longer than that; 0 does not wait.
type WaitFlag time.Duration

// WaitForEver is --wait without a duration.
const WaitForEver = WaitFlag(math.MaxInt64)

// IsBool lets the flag stand alone.
func (WaitFlag) IsBool() bool { return true }

// Decode reads what stands behind the = of the flag, if anything does.
func (w *WaitFlag) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*w = WaitForEver
		return nil
	}
	text := fmt.Sprint(ctx.Scan.Pop().Value)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not how long to wait, such as 30m", text)
	}
	*w = WaitFlag(d)
	return nil
}

// end returns when the waiting ends, zero for never.
func (w WaitFlag) end(now time.Time) time.Time {
	if w == WaitForEver {
		return time.Time{}
	}
	return now.Add(time.Duration(w))
}
