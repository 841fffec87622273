package inspect

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// simulatedBMC behaves as IPMI 2.0 has it, as far as accounts and the LAN go.
type simulatedBMC struct {
	lan     byte // channel
	names   map[byte]string
	words   map[byte]string // passwords
	admins  map[byte]bool
	enabled map[byte]bool
	slots   byte
	strict  bool // refuses names it has, and short passwords, as some do
}

func newBMC() *simulatedBMC {
	return &simulatedBMC{lan: 1, slots: 4, names: map[byte]string{1: "", 2: "root"}, words: map[byte]string{}, admins: map[byte]bool{2: true}, enabled: map[byte]bool{2: true}}
}

func (b *simulatedBMC) Do(_ context.Context, netFn, command byte, data ...byte) ([]byte, error) {
	text := func(p []byte) string { return string(bytes.TrimRight(p, "\x00")) }
	switch {
	case netFn == netApp && command == cmdDeviceID:
		return []byte{0x20, 0x81, 0x07, 0x10, 0x02, 0xdf, 0xa2, 0x02, 0x00, 0x00, 0x01, 0, 0, 0, 0}, nil
	case netFn == netApp && command == cmdGetChannelInfo:
		medium := byte(1)
		if data[0] == b.lan {
			medium = 4
		}
		return []byte{data[0], medium, 1, 0x80, 0, 0, 0, 0, 0}, nil
	case netFn == netTransport && command == cmdGetLANConfig:
		values := map[byte][]byte{lanAddress: {10, 0, 9, 7}, lanSource: {1}, lanMAC: {0xd0, 0x94, 0x66, 0, 0, 7}, lanVLAN: {0x2a, 0x80}}
		if data[0] != b.lan {
			return nil, CompletionError(0xcc)
		}
		return append([]byte{0x11}, values[data[1]]...), nil
	case netFn == netApp && command == cmdGetUserAccess:
		access := byte(0)
		if b.enabled[data[1]] {
			access = 0x14
		}
		return []byte{b.slots, 1, 0, access}, nil
	case netFn == netApp && command == cmdGetUserName:
		name := make([]byte, 16)
		copy(name, b.names[data[0]])
		return name, nil
	case netFn == netApp && command == cmdSetUserName:
		b.names[data[0]] = text(data[1:])
	case netFn == netApp && command == cmdSetUserAccess:
		b.admins[data[1]] = data[0]&0x80 != 0 && data[2] == administrator
	case netFn == netApp && command == cmdSetUserPassword:
		return nil, b.password(data[0]&0x3f, data[1], text(data[2:]))
	default:
		return nil, CompletionError(0xc1)
	}
	return nil, nil
}

func (b *simulatedBMC) password(id, operation byte, word string) error {
	switch {
	case operation == userEnable:
		b.enabled[id] = true
	case operation == passwordSet && b.strict && len(word) < 12:
		return CompletionError(0xcc)
	case operation == passwordSet:
		b.words[id] = word
	case operation == passwordTest && b.words[id] != word:
		return CompletionError(0x80)
	}
	return nil
}

func TestABMCAccountIsMadeOnceAndThenRenewed(t *testing.T) {
	b := newBMC()
	s := &Source{BMC: b, Log: slog.New(slog.DiscardHandler)}
	for _, password := range []string{"first-password", "a-longer-password-20"} {
		if err := s.CreateBMCUser(t.Context(), wire.BMCUserTask{Name: "slipway", Password: password}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[byte]string{1: "", 2: "root", 3: "slipway"}, b.names); diff != "" {
			t.Error(diff)
		}
		if b.words[3] != password || !b.admins[3] || !b.enabled[3] {
			t.Errorf("%+v", b)
		}
	}
}

func TestABMCAccountThatCannotBeMade(t *testing.T) {
	for _, c := range []struct {
		name string
		bmc  func(*simulatedBMC)
		task wire.BMCUserTask
		want string
	}{
		{"a name that is too long", func(*simulatedBMC) {}, wire.BMCUserTask{Name: "a-name-of-17-char", Password: "secret-secret"}, "not a name"},
		{"no password", func(*simulatedBMC) {}, wire.BMCUserTask{Name: "a"}, "1 to 20"},
		{"all accounts are taken", func(b *simulatedBMC) { b.names[3], b.names[4] = "a", "b" }, wire.BMCUserTask{Name: "c", Password: "secret-secret"}, "taken"},
		{"an account without a name that is in use", func(b *simulatedBMC) { b.slots, b.enabled[3] = 3, true }, wire.BMCUserTask{Name: "c", Password: "secret-secret"}, "taken"},
		{"no network port", func(b *simulatedBMC) { b.lan = 15 }, wire.BMCUserTask{Name: "c", Password: "secret-secret"}, "no network port"},
		{"the BMC wants a better password", func(b *simulatedBMC) { b.strict = true }, wire.BMCUserTask{Name: "c", Password: "secret"}, "set the password: invalid field"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBMC()
			c.bmc(b)
			err := (&Source{BMC: b, Log: slog.New(slog.DiscardHandler)}).CreateBMCUser(t.Context(), c.task)
			var e *inventory.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if err := (&Source{}).CreateBMCUser(t.Context(), wire.BMCUserTask{Name: "a", Password: "b"}); err == nil {
		t.Error("a machine without a BMC got an account")
	}
}
