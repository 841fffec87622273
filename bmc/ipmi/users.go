package ipmi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"
	"unicode/utf8"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// currentChannel is the channel that a question comes in on (IPMI 2.0, table 6-1).
const currentChannel = 0x0e

// Operations of Set User Password.
const (
	passwordDisable = 0
	passwordEnable  = 1
	passwordSet     = 2
	passwordTest    = 3

	levelNone = 0x0f
)

// slot is a place for a user.
type slot struct {
	id        byte
	name      string
	level     byte
	isEnabled bool
}

var roles = map[byte]string{1: "user", levelUser: "user", levelOperator: "operator", levelAdministrator: "administrator"}

// slots reads all places for users, and how many of them have names that cannot be changed.
func (d *driver) slots(ctx context.Context) (all []slot, fixedN int, err error) {
	const doing = "read the users"
	for id, n := 1, 1; id <= n; id++ {
		got, err := d.do(ctx, doing, netApp, cmdGetUserAccess, currentChannel, byte(id))
		if err != nil {
			return nil, 0, err
		}
		if len(got) < 4 {
			return nil, 0, d.short(doing)
		}
		// Each answer says how many places there are, so that the loop begins with one.
		n, fixedN = int(got[0]&0x3f), int(got[2]&0x3f)
		u := slot{id: byte(id), level: got[3] & 0x0f, isEnabled: got[3]&0x10 != 0}
		if got[1]>>6 == 2 { // 1 is enabled, 0 is a controller that does not tell
			u.isEnabled = false
		}
		name, err := d.do(ctx, doing, netApp, cmdGetUserName, byte(id))
		if err != nil && codeOf(err) == 0 {
			return nil, 0, err
		}
		if err == nil {
			u.name = inventory.Clean(string(bytes.TrimRightFunc(name, isFiller)), maxUserN)
		}
		all = append(all, u)
	}
	return all, fixedN, nil
}

// isFiller reports what names are filled up with: zeros, or the ones of erased memory, which are no rune.
func isFiller(r rune) bool { return r == 0 || r == utf8.RuneError }

// Users implements bmc.UserManager. The anonymous user, number 1, is named only when it can log in.
func (d *driver) Users(ctx context.Context) ([]bmc.User, error) {
	all, _, err := d.slots(ctx)
	if err != nil {
		return nil, err
	}
	var out []bmc.User
	for _, u := range all {
		if u.name == "" && (u.id != 1 || !u.isEnabled) {
			continue
		}
		role := cmp.Or(roles[u.level], "none")
		out = append(out, bmc.User{ID: strconv.Itoa(int(u.id)), Name: u.name, Role: role, Enabled: u.isEnabled})
	}
	return out, nil
}

// find returns a user's place.
func (d *driver) find(ctx context.Context, user string) (slot, error) {
	all, _, err := d.slots(ctx)
	if err != nil {
		return slot{}, err
	}
	for _, u := range all {
		if u.name == user && user != "" {
			return u, nil
		}
	}
	return slot{}, inventory.Errorf(inventory.NotFound, "the IPMI controller at %s has no user %q", d.address, inventory.Clean(user, maxUserN))
}

// CheckCredentials implements bmc.UserManager: it logs in again as administrator, in a session of its own.
func (d *driver) CheckCredentials(ctx context.Context) error {
	l, err := d.credentials(ctx)
	if err != nil {
		return err
	}
	l.level = levelAdministrator
	s, err := l.open(ctx)
	if err != nil {
		return err
	}
	s.close()
	return nil
}

// credentials returns what to log in with, which SetPassword may have changed.
func (d *driver) credentials(ctx context.Context) (login, error) {
	select {
	case d.lock <- struct{}{}:
		defer d.free()
		return d.login, nil
	case <-ctx.Done():
		return login{}, d.explain(ctx.Err())
	}
}

// SetPassword implements bmc.UserManager. It uses the form with 20 bytes only for passwords that need it. A
// controller remembers the form, and IPMI 1.5 cannot log in with the longer one.
//
// If the process dies after the controller took the password, the new one is in force there. Callers store it before.
func (d *driver) SetPassword(ctx context.Context, user, password string) error {
	if err := checkNewPassword(password); err != nil {
		return err
	}
	u, err := d.find(ctx, user)
	if err != nil {
		return err
	}
	if err := d.setPassword(ctx, u.id, password); err != nil {
		return err
	}
	if user == d.user {
		return d.adopt(ctx, password)
	}
	return nil
}

func checkNewPassword(p string) error {
	if p == "" {
		return inventory.Errorf(inventory.Invalid, "ipmi: the new password is empty")
	}
	return checkPassword(p)
}

// adopt goes on with a new password of our own.
func (d *driver) adopt(ctx context.Context, password string) error {
	select {
	case d.lock <- struct{}{}:
		defer d.free()
		d.password, d.refused = password, nil
		d.drop()
		return nil
	case <-ctx.Done():
		return d.explain(ctx.Err())
	}
}

// setPassword sets a password and asks the controller to compare it. Some take a password without an error and keep
// the old one.
func (d *driver) setPassword(ctx context.Context, id byte, password string) error {
	const doing = "set the password"
	n, flag := 16, byte(0)
	if len(password) > n {
		n, flag = maxPasswordN, 0x80
	}
	data := make([]byte, 2+n)
	copy(data[2:], password)
	// Bit 7 of the first byte says that the password has 20 bytes (IPMI 2.0, table 22-30).
	data[0], data[1] = id|flag, passwordSet
	if _, err := d.do(ctx, doing, netApp, cmdSetPassword, data...); err != nil {
		// Codes below 0x80 are the vendor's own. Some mean that the password breaks a rule.
		var e *inventory.Error
		if c := codeOf(err); (c != 0 && c < 0x80 || c == codeField || c == codeUnspecified || c == 0x80) && errors.As(err, &e) {
			e = e.WithHint("it may break the controller's rules for passwords: use upper and lower case, digits and a sign, 16 characters")
			e.Kind = inventory.Invalid
			return e
		}
		return err
	}
	data[1] = passwordTest
	_, err := d.do(ctx, doing, netApp, cmdSetPassword, data...)
	switch c := codeOf(err); {
	case c == 0x80 || c == 0x81: // another password, or of another length
		return inventory.Errorf(inventory.Invalid, "the IPMI controller at %s took the new password, but did not keep it", d.address).
			WithHint("it may break the controller's rules for passwords: use upper and lower case, digits and a sign, 16 characters")
	case c == 0:
		return err
	}
	return nil // it cannot compare
}

// CreateUser implements bmc.UserManager. It skips a slot if the controller refuses the name: see the quirk
// slots-locked.
func (d *driver) CreateUser(ctx context.Context, user, password string) error {
	if user == "" || len(user) > maxUserN || inventory.Clean(user, maxUserN) != user {
		return inventory.Errorf(inventory.Invalid, "ipmi: a user name has 1 to %d characters", maxUserN)
	}
	if err := checkNewPassword(password); err != nil {
		return err
	}
	all, fixedN, err := d.slots(ctx)
	if err != nil {
		return err
	}
	for _, u := range all {
		if u.name == user {
			return inventory.Errorf(inventory.Conflict, "the IPMI controller at %s already has a user %s", d.address, user)
		}
	}
	for _, u := range all {
		// Place 1 is the anonymous user, and those up to fixedN have names that nobody can change.
		if u.name != "" || u.id == 1 || int(u.id) <= fixedN {
			continue
		}
		err = d.rename(ctx, u.id, user)
		if c := codeOf(err); c == codeField || c == codeState || c == codeNotPresent {
			continue
		}
		if err != nil {
			return err
		}
		if err = d.furnish(ctx, u.id, password); err != nil {
			// A half-made user could log in with a password that nobody stored. So even a cancelled call removes it.
			d.clear(context.WithoutCancel(ctx), u.id) // the first error says more
			return err
		}
		return d.confirmUser(ctx, user, true)
	}
	return inventory.Errorf(inventory.Invalid, "the IPMI controller at %s has no free slot for another user", d.address).
		WithHint("delete one that is not needed")
}

func (d *driver) rename(ctx context.Context, id byte, user string) error {
	data := make([]byte, 1+maxUserN)
	data[0] = id
	copy(data[1:], user)
	_, err := d.do(ctx, "name the user", netApp, cmdSetUserName, data...)
	return err
}

// access sets what a user may do on this channel: IPMI messages or not, and how much.
func (d *driver) access(ctx context.Context, id byte, messaging bool, level byte) error {
	const change, allowed = 0x80, 0x10
	// Without the bit change, the controller leaves the bits for messaging as they are.
	flags := byte(change | currentChannel)
	if messaging {
		flags |= allowed
	}
	_, err := d.do(ctx, "set what the user may do", netApp, cmdSetUserAccess, flags, id, level, 0)
	return err
}

// furnish makes a named place an administrator.
func (d *driver) furnish(ctx context.Context, id byte, password string) error {
	if err := d.setPassword(ctx, id, password); err != nil {
		return err
	}
	if err := d.access(ctx, id, true, levelAdministrator); err != nil {
		return err
	}
	if _, err := d.do(ctx, "enable the user", netApp, cmdSetPassword, id, passwordEnable); err != nil {
		return err
	}
	// The right to the serial console; controllers without one refuse it.
	_, err := d.do(ctx, "let the user open consoles", netApp, cmdSetPayloadAccess, currentChannel, id, 0x02, 0, 0, 0)
	if codeOf(err) != 0 {
		return nil
	}
	return err
}

// DeleteUser implements bmc.UserManager.
func (d *driver) DeleteUser(ctx context.Context, user string) error {
	if user == d.user {
		return inventory.Errorf(inventory.Invalid, "%s is the user that we log in with", inventory.Clean(user, maxUserN)).
			WithHint("give the host's controller another user first")
	}
	u, err := d.find(ctx, user)
	if err != nil {
		return err
	}
	if err := d.clear(ctx, u.id); err != nil {
		return err
	}
	return d.confirmUser(ctx, user, false)
}

// confirmUser reads back whether a user is there, as an administrator, or not there any more.
func (d *driver) confirmUser(ctx context.Context, user string, isThere bool) error {
	u, err := d.find(ctx, user)
	switch {
	case err != nil && bmc.KindOf(err) != inventory.NotFound:
		return err
	case (err == nil) != isThere:
		return inventory.Errorf(inventory.Unavailable, "the IPMI controller at %s took the order to change the user %s, but did not carry it out", d.address, inventory.Clean(user, maxUserN))
	case isThere && u.level != levelAdministrator:
		return inventory.Errorf(inventory.Invalid, "the IPMI controller at %s made the user %s, but not an administrator", d.address, inventory.Clean(user, maxUserN)).
			WithHint("change it on the controller's own pages")
	}
	return nil
}

// clear disables a user first, then takes its rights, then its name. Whatever fails on the way, nobody keeps access.
func (d *driver) clear(ctx context.Context, id byte) error {
	if _, err := d.do(ctx, "disable the user", netApp, cmdSetPassword, id, passwordDisable); err != nil {
		return err
	}
	if err := d.access(ctx, id, false, levelNone); err != nil {
		return err
	}
	err := d.rename(ctx, id, "")
	if codeOf(err) != 0 {
		return inventory.Errorf(inventory.Invalid, "user %d of the IPMI controller at %s is shut out, but its name cannot be removed", id, d.address).
			WithHint("remove it on the controller's own pages")
	}
	return err
}
