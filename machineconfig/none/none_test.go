package none

import (
	"testing"

	"slipway.dev/slipway/machineconfig"
)

func TestNoneEmitsNothingAndJoinsNothing(t *testing.T) {
	if a, req, err := New().Emit(machineconfig.BootstrapInput{}); a != nil || req.Binaries != nil || err != nil {
		t.Errorf("%v %v %v", a, req, err)
	}
	if _, _, err := New().Emit(machineconfig.BootstrapInput{Spec: machineconfig.BootstrapSpec{Target: "prod"}}); err == nil {
		t.Error("a target is taken")
	}
}
