package ignition

import (
	"encoding/json"
	"math/rand"
	"testing"

	"slipway.dev/slipway/machineconfig"
)

// TestRenderSurvivesDamage changes bytes of good configurations: whatever comes of it, either there are errors or the
// document is one that Ignition reads. It covers more in a second than the fuzzer, which slows Butane down.
func TestRenderSurvivesDamage(t *testing.T) {
	var seeds [][]byte
	for _, c := range []machineconfig.Config{
		{Files: sampleFiles, Users: sampleUsers, Units: sampleUnits, Host: sampleHost}, {Network: sampleNetwork}, {Storage: sampleStorage}, sampleBootstrap,
	} {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, b)
	}
	rng := rand.New(rand.NewSource(1))
	targets := []machineconfig.Target{onFCOS, onFlatcar, onDebian, onRHCOS}
	rendered := 0
	for n := 0; n < 400; {
		b := append([]byte(nil), seeds[rng.Intn(len(seeds))]...)
		for range 1 + rng.Intn(3) {
			i := rng.Intn(len(b))
			switch rng.Intn(3) {
			case 0:
				b[i] = byte(rng.Intn(256))
			case 1:
				b = append(b[:i], b[min(len(b), i+rng.Intn(4)):]...)
			case 2:
				b = append(b[:i], append([]byte{"0123456789 /%\"\\nat:"[rng.Intn(18)]}, b[i:]...)...)
			}
		}
		var c machineconfig.Config
		if json.Unmarshal(b, &c) != nil {
			continue
		}
		on := targets[n%len(targets)]
		n++
		out, report := New().Render(on, &c)
		if (out == nil) != report.HasErrors() {
			t.Fatalf("%s: nothing rendered is %t, but findings are %v\n%s", on, out == nil, report, b)
		}
		if out == nil {
			continue
		}
		rendered++
		if found := Validate(out.Documents[0].Data); len(found) > 0 {
			t.Errorf("%s: Ignition refuses what was rendered: %v", on, found)
		}
	}
	t.Logf("%d of 400 were rendered", rendered)
}
