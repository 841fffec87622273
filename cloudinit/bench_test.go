package cloudinit_test

import (
	"testing"

	"slipway.dev/slipway/cloudinit"
)

func BenchmarkRender(b *testing.B) {
	c, p := full(), cloudinit.New()
	for b.Loop() {
		if r, report := p.Render(targets[0], c); r == nil {
			b.Fatal(report)
		}
	}
}
