package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"time"
)

// imageThree compares how fast machines boot an image from three instances, each with its own shaped link, with how fast they do from one.
func imageThree(_ context.Context, e *Env) (f Figure, err error) {
	f = Figure{Name: "image-three", Unit: "MB/s", PeerName: "one-instance"}
	if e.Slipway == "" {
		return f, skipped("compares Slipway with itself")
	}
	if f.Peer, err = e.Instances(1); err != nil {
		return f, err
	}
	f.Ours, err = e.Instances(3)
	return f, err
}

// failedOver is how long machines and people waited after the leader was killed, at most in ten times.
type failedOver struct{ dhcp, engine time.Duration }

// failover measures what a killed leader costs. The benchmarks of a run share the measurement.
func failover(f Figure, pick func(*failedOver) time.Duration) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		if e.Slipway == "" {
			return f, skipped("has no peer")
		}
		if e.failover == nil {
			got, err := e.failOver(ctx)
			if err != nil {
				return f, err
			}
			e.failover = got
		}
		f.Ours = pick(e.failover).Seconds()
		return f, nil
	}
}

// worstRE is the last line of the test.
var worstRE = regexp.MustCompile(`worst of ten: DHCP (\S+), engine (\S+)`)

// failOver runs the test that kills the leader ten times. It is a test because make test-long runs it, too.
func (e *Env) failOver(ctx context.Context) (*failedOver, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout=20m", "-run=^TestPostgreSQLFailsOverInSeconds$", "../net")
	cmd.Env = append(os.Environ(), "SLIPWAY_NET=1", "SLIPWAY_LONG=1", "SLIPWAY_POSTGRES=1")
	out, err := cmd.CombinedOutput()
	found := worstRE.FindSubmatch(out)
	if err != nil || found == nil {
		return nil, fmt.Errorf("test/net kills a leader ten times: %w: %s", err, out[max(0, len(out)-2000):])
	}
	e.say("%s", found[0])
	got := &failedOver{}
	if got.dhcp, err = time.ParseDuration(string(found[1])); err != nil {
		return nil, err
	}
	got.engine, err = time.ParseDuration(string(found[2]))
	return got, err
}
