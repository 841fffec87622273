package inspect

import (
	"context"
	"errors"
	"strings"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// Commands for accounts (IPMI 2.0 section 22.26 to 22.30).
const (
	cmdSetUserAccess   = 0x43
	cmdGetUserAccess   = 0x44
	cmdSetUserName     = 0x45
	cmdGetUserName     = 0x46
	cmdSetUserPassword = 0x47

	userDisable, userEnable, passwordSet, passwordTest = 0, 1, 2, 3

	administrator = 4
)

// CreateBMCUser creates an administrator's account on the BMC. It gives an account of that name the new password, so
// that doing it twice is doing it once. No error holds the password. The errors are Invalid (no BMC, bad name, no
// free account) and Unavailable (the BMC refuses or does not answer).
func (s *Source) CreateBMCUser(ctx context.Context, task wire.BMCUserTask) error {
	if s.BMC == nil {
		return inventory.Errorf(inventory.Invalid, "this machine has no BMC that answers in band").
			WithHint("set the account by hand, or build the image with the modules ipmi_si and ipmi_devintf")
	}
	if task.Name == "" || len(task.Name) > 16 || strings.ContainsFunc(task.Name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return inventory.Errorf(inventory.Invalid, "%q is not a name for an account of a BMC", inventory.Clean(task.Name, 40)).WithHint("use 1 to 16 letters and digits")
	}
	if task.Password == "" || len(task.Password) > 20 {
		return inventory.Errorf(inventory.Invalid, "an IPMI password has 1 to 20 characters")
	}
	channel, ok := s.lanChannel(ctx)
	if !ok {
		return inventory.Errorf(inventory.Invalid, "the BMC has no network port")
	}
	id, err := s.userSlot(ctx, channel, task.Name)
	if err != nil {
		return err
	}
	return s.setUser(ctx, channel, id, task)
}

// userSlot returns the account of that name, else the first free one. Number 1 is the anonymous user, which is never
// used.
func (s *Source) userSlot(ctx context.Context, channel byte, name string) (byte, error) {
	access, err := s.BMC.Do(ctx, netApp, cmdGetUserAccess, channel, 1)
	if err != nil || len(access) < 4 {
		return 0, bmcError("list the accounts of the BMC", err)
	}
	free := byte(0)
	for id := byte(2); id <= access[0]&0x3f; id++ {
		has, err := s.BMC.Do(ctx, netApp, cmdGetUserName, id)
		var code CompletionError
		if err != nil && !errors.As(err, &code) {
			return 0, bmcError("list the accounts of the BMC", err)
		}
		// Some BMCs have no name for an empty account, and say so with an error (Dell: 0xcc).
		text := strings.TrimRight(string(has), "\x00 ")
		if isAll(has, 0xff) {
			text = ""
		}
		if text == name {
			return id, nil
		}
		if text == "" && free == 0 && s.isFree(ctx, channel, id) {
			free = id
		}
	}
	if free == 0 {
		return 0, inventory.Errorf(inventory.Invalid, "all accounts of the BMC are taken").WithHint("delete one: ipmitool user list")
	}
	return free, nil
}

// isFree reports whether an account without a name is not in use either.
func (s *Source) isFree(ctx context.Context, channel, id byte) bool {
	access, err := s.BMC.Do(ctx, netApp, cmdGetUserAccess, channel, id)
	return err != nil || len(access) < 4 || access[3]&0x10 == 0 // messaging is not enabled
}

// setUser fills an account: name, password, rights, and only then enables it. If the process dies in between, a new
// account lets nobody in, and the next try finds it by its name.
func (s *Source) setUser(ctx context.Context, channel, id byte, task wire.BMCUserTask) error {
	name := make([]byte, 16)
	copy(name, task.Name)
	if _, err := s.BMC.Do(ctx, netApp, cmdSetUserName, append([]byte{id}, name...)...); err != nil {
		return bmcError("name the account", err)
	}
	if err := s.password(ctx, passwordSet, id, task.Password); err != nil {
		return bmcError("set the password", err)
	}
	// Change bits; IPMI messaging and link authentication allowed.
	if _, err := s.BMC.Do(ctx, netApp, cmdSetUserAccess, 0x80|0x30|channel, id, administrator, 0); err != nil {
		return bmcError("make the account an administrator", err)
	}
	if _, err := s.BMC.Do(ctx, netApp, cmdSetUserPassword, id, userEnable); err != nil {
		return bmcError("enable the account", err)
	}
	if err := s.password(ctx, passwordTest, id, task.Password); err != nil {
		return bmcError("check the password that was set", err)
	}
	return nil
}

// password sets or tests one; longer than 16 bytes it needs the 20-byte form of IPMI 2.0.
func (s *Source) password(ctx context.Context, operation, id byte, password string) error {
	size, which := 16, id
	if len(password) > 16 {
		size, which = 20, id|0x80
	}
	field := make([]byte, size)
	copy(field, password)
	_, err := s.BMC.Do(ctx, netApp, cmdSetUserPassword, append([]byte{which, operation}, field...)...)
	return err
}

func bmcError(what string, err error) error {
	if err == nil {
		err = errors.New("the answer is too short")
	}
	return inventory.Errorf(inventory.Unavailable, "%s: %w", what, err).WithHint("the BMC may demand a longer or stronger password")
}
