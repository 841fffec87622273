package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// told is a request with the time of its call and that of its answer; 0 for none.
type told struct {
	from, to int64
	asked    Request
	heard    Answer
}

func done(holder string) Answer    { return Answer{Is: Done, Holder: holder} }
func refused(holder string) Answer { return Answer{Is: Refused, Holder: holder} }

func saw(holder string, epoch int64, value string) Answer {
	return Answer{Is: Done, Holder: holder, Epoch: epoch, Value: value}
}

// The histories of each model that one program could have made, and those that it could not.
func TestEachModelTellsRightFromWrong(t *testing.T) {
	take := func(who string) Request { return Request{Do: Take, Who: who} }
	give := func(who string) Request { return Request{Do: Give, Who: who} }
	write := func(who string, epoch int64, value string) Request {
		return Request{Do: Write, Who: who, Epoch: epoch, Value: value}
	}
	edit := func(version int64, value string) Request {
		return Request{Do: Write, Who: "e", Epoch: version, Value: value}
	}
	turn := func(value string) Request { return Request{Do: Write, Who: "e", Value: value} }
	read := Request{Do: Read, Who: "reader"}
	open := Answer{Is: Unknown}
	for name, tc := range map[string]struct {
		model   string
		history []told
		isRight bool
	}{
		"one after the other":                         {Leases, []told{{1, 2, take("a"), done("")}, {3, 4, give("a"), done("")}, {5, 6, take("b"), done("")}}, true},
		"a machine renews its lease":                  {Leases, []told{{1, 2, take("a"), done("")}, {3, 4, take("a"), done("")}}, true},
		"two machines have one address":               {Leases, []told{{1, 2, take("a"), done("")}, {3, 4, take("b"), done("")}}, false},
		"two at once, the address is free between":    {Leases, []told{{1, 9, take("a"), done("")}, {2, 8, give("a"), done("")}, {3, 9, take("b"), done("")}}, true},
		"a lease without an answer counts":            {Leases, []told{{1, 0, take("a"), open}, {3, 4, give("a"), done("")}}, true},
		"a lease without an answer counts not":        {Leases, []told{{1, 0, take("a"), open}, {3, 4, take("b"), done("")}}, true},
		"what was given was never taken":              {Leases, []told{{3, 4, give("a"), done("")}}, false},
		"a host has one machine":                      {Hosts, []told{{1, 2, take("a"), done("")}, {3, 4, take("b"), refused("a")}}, true},
		"a host is claimed twice for one machine":     {Hosts, []told{{1, 2, take("a"), done("")}, {3, 4, take("a"), done("")}}, false},
		"a refusal names one who never had it":        {Hosts, []told{{1, 2, take("a"), done("")}, {3, 4, take("b"), refused("c")}}, false},
		"a refused claim is there":                    {Hosts, []told{{1, 2, take("a"), refused("")}, {3, 4, take("b"), refused("a")}}, false},
		"an acknowledged operation is lost":           {Operations, []told{{1, 2, take("a"), done("")}, {3, 4, take("b"), refused("")}}, false},
		"a code works once":                           {Tokens, []told{{1, 4, take("a"), done("")}, {2, 3, take("b"), refused("")}}, true},
		"a code works twice":                          {Tokens, []told{{1, 4, take("a"), done("")}, {2, 3, take("b"), done("")}}, false},
		"a code is refused that nobody has used":      {Tokens, []told{{1, 2, take("a"), refused("")}, {3, 4, take("b"), done("")}}, false},
		"a code may be used by whoever was killed":    {Tokens, []told{{1, 0, take("a"), open}, {3, 4, take("b"), refused("")}}, true},
		"an instance after the other":                 {Duties, []told{{1, 2, write("a", 1, "x"), saw("", 0, "")}, {3, 4, write("b", 2, "y"), saw("a", 1, "x")}, {5, 6, read, saw("b", 2, "y")}}, true},
		"a paused instance writes in its old epoch":   {Duties, []told{{1, 2, write("a", 1, "x"), saw("", 0, "")}, {3, 4, write("b", 2, "y"), saw("a", 1, "x")}, {5, 6, write("a", 1, "z"), saw("b", 2, "y")}}, false},
		"the same while the other writes":             {Duties, []told{{1, 9, write("b", 2, "y"), saw("a", 1, "x")}, {2, 3, write("a", 1, "x"), saw("", 0, "")}}, true},
		"an epoch has two instances":                  {Duties, []told{{1, 2, write("a", 1, "x"), saw("", 0, "")}, {3, 4, write("b", 1, "y"), saw("a", 1, "x")}}, false},
		"an instance reads what it remembers":         {Duties, []told{{1, 2, write("a", 1, "x"), saw("", 0, "")}, {3, 4, write("a", 1, "y"), saw("a", 1, "x")}, {5, 6, read, saw("a", 1, "x")}}, false},
		"a read at the same time may be of before":    {Duties, []told{{1, 2, write("a", 1, "x"), saw("", 0, "")}, {3, 9, write("a", 1, "y"), saw("a", 1, "x")}, {5, 6, read, saw("a", 1, "x")}}, true},
		"a write without an answer is seen later":     {Duties, []told{{1, 0, write("a", 1, "x"), open}, {3, 4, read, saw("", 0, "")}, {5, 6, read, saw("a", 1, "x")}}, true},
		"a write without an answer comes and goes":    {Duties, []told{{1, 0, write("a", 1, "x"), open}, {3, 4, read, saw("a", 1, "x")}, {5, 6, read, saw("", 0, "")}}, false},
		"a read names who has it":                     {Hosts, []told{{1, 2, take("a"), done("")}, {3, 4, read, done("a")}, {5, 6, give("a"), done("")}, {7, 8, read, done("")}}, true},
		"a read names who had it":                     {Hosts, []told{{1, 2, take("a"), done("")}, {3, 4, give("a"), done("")}, {5, 6, read, done("a")}}, false},
		"a holder is told that it has it not":         {Leases, []told{{1, 2, take("a"), done("")}, {3, 4, take("a"), refused(Another)}}, false},
		"somebody is told that another has it":        {Leases, []told{{1, 2, take("a"), done("")}, {3, 4, take("b"), refused(Another)}}, true},
		"the answer names the operation":              {Operations, []told{{1, 2, take(""), done("x")}, {3, 4, take(""), refused("x")}, {5, 6, give("x"), done("")}}, true},
		"the answer names another operation":          {Operations, []told{{1, 2, take(""), done("x")}, {3, 4, take(""), done("y")}}, false},
		"an operation without an answer has a name":   {Operations, []told{{1, 0, take(""), open}, {3, 4, take(""), refused("x")}, {5, 6, give("x"), done("")}, {7, 8, take(""), done("y")}}, true},
		"an operation without an answer has two":      {Operations, []told{{1, 0, take(""), open}, {3, 4, take(""), refused("x")}, {5, 6, take(""), refused("y")}}, false},
		"a token that was deleted lets nobody in":     {Access, []told{{1, 2, take("a"), done("")}, {3, 4, read, done("a")}, {5, 6, give("a"), done("")}, {7, 8, read, done("")}}, true},
		"a token that was deleted lets somebody in":   {Access, []told{{1, 2, take("a"), done("")}, {3, 4, give("a"), done("")}, {5, 6, read, done("a")}}, false},
		"a new token lets nobody in":                  {Access, []told{{1, 2, take("a"), done("")}, {3, 4, read, done("")}}, false},
		"each edit is of the version before":          {Versions, []told{{1, 2, edit(0, "x"), saw("", 1, "")}, {3, 4, edit(1, "y"), saw("", 2, "")}, {5, 6, read, saw("", 2, "y")}}, true},
		"an edit of an old version is refused":        {Versions, []told{{1, 2, edit(0, "x"), saw("", 1, "")}, {3, 4, edit(0, "y"), refused("")}}, true},
		"an edit of the version is refused":           {Versions, []told{{1, 2, edit(0, "x"), saw("", 1, "")}, {3, 4, edit(1, "y"), refused("")}}, false},
		"an edit is lost":                             {Versions, []told{{1, 2, edit(0, "x"), saw("", 1, "")}, {3, 4, edit(1, "y"), saw("", 2, "")}, {3, 5, edit(1, "z"), saw("", 2, "")}}, false},
		"an edit is made twice":                       {Versions, []told{{1, 2, edit(0, "x"), saw("", 1, "")}, {3, 4, read, saw("", 2, "x")}}, false},
		"an edit was made, and its client is refused": {Versions, []told{{1, 2, edit(0, "x"), refused("")}, {3, 4, read, saw("", 1, "x")}}, false},
		"an edit without an answer counts":            {Versions, []told{{1, 0, edit(0, "x"), open}, {3, 4, edit(1, "y"), saw("", 2, "")}, {5, 6, read, saw("", 2, "y")}}, true},
		"the last one has turned it":                  {Flags, []told{{1, 2, turn("on"), done("")}, {3, 4, turn(""), done("")}, {5, 6, read, saw("", 0, "")}}, true},
		"a switch shows what it was":                  {Flags, []told{{1, 2, turn("on"), done("")}, {3, 4, turn(""), done("")}, {5, 6, read, saw("", 0, "on")}}, false},
		"a switch is turned late":                     {Flags, []told{{1, 0, turn("on"), open}, {3, 4, read, saw("", 0, "")}, {5, 6, read, saw("", 0, "on")}}, true},
		"a write that the fence has refused is seen":  {Duties, []told{{1, 2, write("a", 1, "x"), Answer{Is: Refused}}, {3, 4, read, saw("a", 1, "x")}}, false},
	} {
		var h History
		for _, x := range tc.history {
			if x.to == 0 {
				x.to = forever
			}
			h = append(h, porcupine.Operation{Input: x.asked, Output: x.heard, Call: x.from, Return: x.to})
		}
		if isRight := porcupine.CheckOperations(models[tc.model].porcupine(), h.ended()); isRight != tc.isRight {
			t.Errorf("%s, %s: right is %t, want %t", tc.model, name, isRight, tc.isRight)
		}
	}
}

// A process that was killed leaves requests without an answer, and half a line.
func TestAJournalIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	j, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []Answer{{Is: Done}, {Is: Refused, Holder: "m2", Other: "h2"}, {Is: Failed}, {Is: Unknown}} {
		if got, err := j.Ask(Request{Model: Hosts, Key: "h1", Do: Take, Who: "m1"}, func() Answer { return a }); err != nil || got != a {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"n":9,"at":12,"request":{"model":"leases","key":"10.0.0.1"}}` + "\n" + `{"n":10,"at":1`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]int{
		"hosts": len(h.of(Hosts, "h1")), "machines": len(h.of(Machines, "m1")), "leases": len(h.of(Leases, "10.0.0.1")), "open": h.openN(),
	} {
		if want := map[string]int{"hosts": 3, "machines": 3, "leases": 1, "open": 3}[what]; got != want { // a claim is seen from both sides
			t.Errorf("%s: %d requests, want %d", what, got, want)
		}
	}
	if a := h.of(Machines, "m1")[1].Output.(Answer); a.Holder != "h2" || a.Other != "m2" {
		t.Errorf("seen from the machine, the answer is %+v", a)
	}
	for n, op := range h[:2] {
		if op.Call <= 0 || op.Return <= op.Call {
			t.Errorf("request %d lasts from %d to %d", n, op.Call, op.Return)
		}
	}
	if err := os.WriteFile(path, []byte(`{"n":1,"at":1,"answer":{"is":"done"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "nobody asked") {
		t.Errorf("an answer without a request: %v", err)
	}
}
