package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

var testStart = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return testStart.Add(time.Duration(s * float64(time.Second))) }

func heard(s float64, kind string) inventory.Event {
	return inventory.Event{ID: int64(s*10) + 1, At: at(s), Kind: kind}
}

// steps2text is steps in one line: name, state, and from when to when.
func steps2text(steps []TimelineStep) string {
	var out []string
	for _, s := range steps {
		text := s.Step + " " + s.State
		if !s.StartedAt.IsZero() {
			text += fmt.Sprintf(" %.0f", s.StartedAt.Sub(testStart).Seconds())
		}
		if !s.EndedAt.IsZero() {
			text += fmt.Sprintf("-%.0f", s.EndedAt.Sub(testStart).Seconds())
		}
		if s.TryN > 0 {
			text += fmt.Sprintf(" x%d", s.TryN)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestABootIsShownStepByStep(t *testing.T) {
	image := inventory.BootSession{Boot: "image", StartedAt: at(0)}
	for _, tc := range []struct {
		name  string
		boot  inventory.BootSession
		ended inventory.Outcome
		by    float64
		heard []inventory.Event
		want  string
	}{
		{name: "nothing was heard after its first packet", boot: inventory.BootSession{StartedAt: at(0)}, want: "address running 0, loader ahead, decision ahead"},
		{
			name: "it stands still at its loader", boot: inventory.BootSession{StartedAt: at(0)},
			heard: []inventory.Event{heard(2, inventory.EventDHCPAck), heard(3, inventory.EventLoaderStarted)},
			want:  "address done 0-2, loader running 2, decision ahead",
		},
		{
			name: "its loader broke off", boot: inventory.BootSession{StartedAt: at(0)},
			heard: []inventory.Event{heard(2, inventory.EventDHCPAck), heard(3, inventory.EventLoaderStarted), heard(5, inventory.EventLoaderFailed)},
			want:  "address done 0-2, loader failed 2-5, decision ahead",
		},
		{
			name: "it went silent there", boot: inventory.BootSession{StartedAt: at(0)}, ended: inventory.OutcomeAbandoned, by: 60,
			heard: []inventory.Event{heard(2, inventory.EventDHCPAck), heard(3, inventory.EventLoaderStarted)},
			want:  "address done 0-2, loader failed 2-60",
		},
		{
			name: "an image on its way", boot: image,
			heard: []inventory.Event{
				heard(1, inventory.EventDHCPAck), heard(4, inventory.EventLoaderSent), heard(5, inventory.EventDHCPAck), heard(6, inventory.EventBootDecided),
				heard(8, inventory.EventArtefactSent), heard(20, inventory.EventArtefactSent),
			},
			want: "address done 0-1, loader done 1-4, decision done 4-6, system done 6-20",
		},
		{
			name: "sent on to its disk without a loader", boot: inventory.BootSession{Boot: "disk", StartedAt: at(0)}, ended: inventory.OutcomeDisk, by: 120,
			want: "",
		},
		{
			name: "our agent", boot: inventory.BootSession{Boot: "agent", StartedAt: at(0)},
			heard: []inventory.Event{
				heard(1, inventory.EventDHCPAck), heard(2, inventory.EventLoaderSent), heard(3, inventory.EventBootDecided), heard(9, inventory.EventArtefactSent),
				heard(15, inventory.EventAgentStarted), heard(16, inventory.EventAgentStarted),
			},
			want: "address done 0-1, loader done 1-2, decision done 2-3, system done 3-9, agent done 9-15",
		},
		{
			name: "a firmware that had its address before", boot: image, // its DHCP was lost, its script was not
			heard: []inventory.Event{heard(3, inventory.EventBootDecided)},
			want:  "decision done 0-3, system running 3",
		},
	} {
		if tc.boot.Outcome = tc.ended; tc.ended != "" {
			tc.boot.EndedAt = at(tc.by)
		}
		if got := steps2text(bootSteps(tc.boot, tc.heard)); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func noted(s float64, step, state, detail string) inventory.Event {
	return inventory.Event{ID: int64(s) + 1, At: at(s), Kind: inventory.EventOperation, Detail: "inspect: " + detail, Data: map[string]any{"operation": "op", "step": step, "state": state}}
}

func TestAnOperationIsShownStepByStep(t *testing.T) {
	way := []inventory.Step{"power", "netboot", "inspect", "rest"}
	begun := []inventory.Event{noted(0, "power", "running", "power"), noted(5, "netboot", "running", "netboot"), noted(60, "inspect", "running", "inspect")}
	for _, tc := range []struct {
		name   string
		op     inventory.Operation
		events []inventory.Event
		want   string
	}{
		{"under way", inventory.Operation{State: inventory.OpRunning, Step: "inspect"}, begun, "power done 0-5, netboot done 5-60, inspect running 60, rest ahead"},
		{
			"a step that was not noted yet",
			inventory.Operation{State: inventory.OpRunning, Step: "rest", StepAt: at(70)},
			begun,
			"power done 0-5, netboot done 5-60, inspect running 60, rest running 70",
		},
		{
			"done",
			inventory.Operation{State: inventory.OpDone, Step: "inspect", EndedAt: at(90)},
			append(slices.Clone(begun), noted(90, "inspect", "done", "done after 90s")),
			"power done 0-5, netboot done 5-60, inspect done 60-90",
		},
		{
			"failed",
			inventory.Operation{State: inventory.OpFailed, Step: "inspect", EndedAt: at(90)},
			append(slices.Clone(begun), noted(90, "inspect", "failed", "failed at inspect")),
			"power done 0-5, netboot done 5-60, inspect failed 60-90",
		},
		{
			"tried again",
			inventory.Operation{State: inventory.OpRunning, Step: "power"},
			[]inventory.Event{
				noted(0, "power", "running", "power"), noted(5, "netboot", "running", "netboot"), noted(600, "power", "running", "attempt 2 of 3 follows"),
			},
			"power done 0-5, netboot done 5-600, power running 600 x2, netboot ahead, inspect ahead, rest ahead",
		},
	} {
		if got := steps2text(operationSteps(tc.op, way, tc.events)); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func TestTheMedianIsTheMiddle(t *testing.T) {
	for want, of := range map[float64][]float64{0: nil, 3: {3}, 2: {9, 1, 2}, 2.5: {1, 2, 3, 100}} {
		if got := median(of); got != want {
			t.Errorf("median of %v is %v, want %v", of, got, want)
		}
	}
}
