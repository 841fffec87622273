package inventory

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestAnErrorRefersToWhatItsTextsName(t *testing.T) {
	inner := Errorf(Conflict, "MAC %s belongs to host %s", "52:54:00:aa:00:01", HostRef("web-2"))
	for _, c := range []struct {
		err  error
		want []Ref
	}{
		{inner, []Ref{HostRef("web-2")}},
		{inner.WithHint("machine %s goes first", MachineRef("m")), []Ref{HostRef("web-2"), MachineRef("m")}},
		{Errorf(Invalid, "line 3: %w", inner), []Ref{HostRef("web-2")}},
		{fmt.Errorf("store it: %w", inner), []Ref{HostRef("web-2")}},
		{Errorf(Conflict, "kept for %s", Holder{MachineUID: "u", Machine: "m", HostID: "h", Host: "web-2"}), []Ref{MachineRef("m"), HostRef("web-2")}},
		{inner.Naming(PoolRef("beta")), []Ref{HostRef("web-2"), PoolRef("beta")}},
		{Errorf(Conflict, "host %s is busy", "web-1"), nil},
		{errors.New("web-2"), nil},
		{nil, nil},
	} {
		if got := RefsOf(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%v refers to %v, want %v", c.err, got, c.want)
		}
	}
	if inner.Msg != "MAC 52:54:00:aa:00:01 belongs to host web-2" || len(inner.Refs) != 1 {
		t.Errorf("the error is %+v", inner)
	}
}

func TestTheSubjectOfAnEventIsAReference(t *testing.T) {
	for subject, want := range map[string][]Ref{
		"machine/web-1": {HostRef("a"), MachineRef("web-1")}, "pool/beta": {HostRef("a"), PoolRef("beta")}, "subnet/rack1": {HostRef("a")}, "": {HostRef("a")},
	} {
		e := Event{Subject: subject, Refs: []Ref{HostRef("a")}}
		if got := e.References(); !slices.Equal(got, want) || len(e.Refs) != 1 {
			t.Errorf("%q refers to %v, want %v", subject, got, want)
		}
	}
}
