package redfish

import (
	"context"
	"net/http"
	"strconv"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// account is a ManagerAccount.
type account struct {
	Path     string `json:"@odata.id"`
	ID       string `json:"Id"`
	UserName string
	RoleID   string `json:"RoleId"`
	Enabled  bool
	Links    struct{ Role link }

	service string // where the account service is
}

// accounts reads all accounts and where they are. Where accounts are slots (iDRAC), the empty ones have no name.
func (d *driver) accounts(ctx context.Context) ([]account, string, error) {
	root, err := d.root(ctx)
	if err != nil {
		return nil, "", err
	}
	if root.AccountService.ID == "" {
		return nil, "", inventory.Errorf(inventory.Invalid, "the controller at %s does not show its accounts", d.host())
	}
	var service struct{ Accounts link }
	if err := d.read(ctx, root.AccountService.ID, &service); err != nil {
		return nil, "", err
	}
	docs, err := d.members(ctx, service.Accounts.ID)
	if err != nil {
		return nil, "", err
	}
	var all []account
	for _, doc := range docs {
		a := account{service: root.AccountService.ID}
		if decode(doc, &a) == nil && a.Path != "" {
			all = append(all, a)
		}
	}
	return all, service.Accounts.ID, nil
}

// account finds an account by its name.
func (d *driver) account(ctx context.Context, user string) (*account, error) {
	all, _, err := d.accounts(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		// Names are compared with case: two accounts may differ in nothing else, and the wrong one would get the password.
		if user != "" && all[i].UserName == user {
			return &all[i], nil
		}
	}
	return nil, inventory.Errorf(inventory.NotFound, "the controller at %s has no account %q", d.host(), inventory.Clean(user, 40))
}

// Users lists the accounts that have a name.
func (d *driver) Users(ctx context.Context) (_ []bmc.User, err error) {
	defer d.safe(&err)
	all, _, err := d.accounts(ctx)
	if err != nil {
		return nil, err
	}
	var users []bmc.User
	for i := range all {
		a := &all[i]
		if a.UserName == "" {
			continue
		}
		role, err := d.roleOf(ctx, a)
		if err != nil {
			return nil, err
		}
		users = append(users, bmc.User{ID: clean(a.ID), Name: clean(a.UserName), Role: role, Enabled: a.Enabled})
	}
	return users, nil
}

// CheckCredentials logs in again and reads the role of the account. An account that is not in the list comes from a
// directory. It counts as an administrator if the controller shows it the accounts of others.
func (d *driver) CheckCredentials(ctx context.Context) (err error) {
	defer d.safe(&err)
	// An open session would show that the password was right when it began.
	// A controller that fails to end the session has no session of ours either way: accounts logs in again.
	if err := d.endSession(ctx); err != nil && bmc.KindOf(err) != inventory.Unavailable {
		return err
	}
	all, _, err := d.accounts(ctx)
	if err != nil {
		return err
	}
	others := 0
	for i := range all {
		a := &all[i]
		if a.UserName != d.user {
			if a.UserName != "" {
				others++
			}
			continue
		}
		role, err := d.roleOf(ctx, a)
		if err != nil {
			return err
		}
		if role == "administrator" || role == roleUnknown { // an unknown role is no reason to refuse
			return nil
		}
		return inventory.Errorf(inventory.Unauthorized, "%s is no administrator of the controller at %s, but %q", d.name(), d.host(), clean(a.RoleID)).
			WithHint("give the account a role with the privileges ConfigureUsers and ConfigureManager, such as Administrator")
	}
	if others == 0 {
		return inventory.Errorf(inventory.Unauthorized, "the controller at %s shows no accounts to %s", d.host(), d.name()).WithHint("use an account that is an administrator")
	}
	return nil
}

// SetPassword changes an account's password. If it is the driver's own account, the driver then uses the new
// password.
func (d *driver) SetPassword(ctx context.Context, user, password string) (err error) {
	defer d.safe(&err)
	d.keepSecret(password)
	a, err := d.account(ctx, user)
	if err != nil {
		return err
	}
	if err := d.patch(ctx, a.Path, map[string]any{"Password": password}, "change a password"); err != nil {
		return err
	}
	if !a.Enabled && user != d.user {
		return nil // it cannot log in, whatever its password is
	}
	// The order matters: only a password that has let somebody in replaces the one of this driver. A rotation has stored both
	// before this call, so that a crash anywhere in here loses neither.
	if err := d.prove(ctx, user, password); err != nil {
		return err
	}
	if user == d.user {
		d.setPassword(password)
	}
	return nil
}

// prove logs in as an account, in a connection of its own: that a controller has taken a password does not count. It tries
// twice at most, for more wrong passwords would lock the account.
func (d *driver) prove(ctx context.Context, user, password string) error {
	// A connection of its own: ours may still have a session from the old password.
	c := d.as(user, password)
	for n := range 2 {
		if n > 0 {
			if err := d.sleep(ctx, d.every); err != nil {
				return d.unreached(ctx, err)
			}
		}
		_, _, err := c.enter(ctx)
		if err == nil {
			_, err = c.do(ctx, http.MethodGet, c.start(), nil, nil, "show its systems")
		}
		isIn := err == nil || bmc.KindOf(err) == inventory.Unauthorized && !c.isRefused()
		_ = c.endSession(ctx)
		if isIn {
			return nil // it let us in; what it shows is another matter
		}
		if bmc.KindOf(err) != inventory.Unauthorized {
			return err
		}
		c.setPassword(password)
	}
	return inventory.Errorf(inventory.Invalid, "the controller at %s took the password of user %q, but does not let it in with it", d.host(), inventory.Clean(user, 40)).
		WithHint("the password may break the controller's own rules; its pages may say more")
}

// CreateUser adds an administrator: as a new account, or in the first free slot where accounts are slots.
func (d *driver) CreateUser(ctx context.Context, user, password string) (err error) {
	defer d.safe(&err)
	d.keepSecret(password)
	if user == "" || inventory.Clean(user, 64) != user {
		return inventory.Errorf(inventory.Invalid, "%q is not a user name", inventory.Clean(user, 40))
	}
	all, ref, err := d.accounts(ctx)
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.UserName == user {
			return inventory.Errorf(inventory.Conflict, "the controller at %s has an account %q already", d.host(), user)
		}
	}
	root, err := d.root(ctx)
	if err != nil {
		return err
	}
	// Some vendors have a role of their own for administrators and refuse the standard's name.
	role, err := d.adminRole(ctx, root.AccountService.ID)
	if err != nil {
		return err
	}
	body := map[string]any{"UserName": user, "Password": password, "RoleId": role, "Enabled": true}
	ans, err := d.post(ctx, ref, body, "create an account")
	if err == nil {
		return d.confirmUser(ctx, user, password)
	}
	// These statuses mean that accounts are slots, which PATCH fills. Any other is the real refusal.
	if ans == nil || ans.status != http.StatusMethodNotAllowed && ans.status != http.StatusNotImplemented && ans.status != http.StatusNotFound {
		return err
	}
	s, err := d.system(ctx)
	if err != nil {
		return err
	}
	how, err := d.behaviour(ctx, s)
	if err != nil {
		return err
	}
	for _, a := range all {
		// Some controllers list slots that they do not let anybody fill; the quirk names the first free one.
		n, _ := strconv.Atoi(a.ID)
		if a.UserName == "" && (how.firstFreeSlot == 0 || n >= how.firstFreeSlot) {
			if err := d.patch(ctx, a.Path, body, "create an account"); err != nil {
				return err
			}
			return d.confirmUser(ctx, user, password)
		}
	}
	return inventory.Errorf(inventory.Conflict, "the controller at %s has no free account", d.host()).WithHint("delete one that is not used")
}

// confirmUser looks whether an account is there, is an administrator, and may log in. A slot that was patched shows the new name
// after seconds, and some firmware drops the role or leaves the account disabled without an error.
func (d *driver) confirmUser(ctx context.Context, user, password string) error {
	for n := 0; ; n++ {
		a, err := d.account(ctx, user)
		switch {
		case err == nil:
			role, err := d.roleOf(ctx, a)
			if err != nil {
				return err
			}
			if role != "administrator" && role != roleUnknown || !a.Enabled {
				return inventory.Errorf(inventory.Invalid, "the controller at %s made the account %q, but as %q, enabled %v", d.host(), user, clean(a.RoleID), a.Enabled).
					WithHint("change it on the controller's own pages")
			}
			return d.prove(ctx, user, password)
		case bmc.KindOf(err) != inventory.NotFound:
			return err
		case n+1 >= d.looks:
			return inventory.Errorf(inventory.Unavailable, "the controller at %s took the order to make the account %q, but does not have it", d.host(), user)
		}
		if err := d.sleep(ctx, d.every); err != nil {
			return d.unreached(ctx, err)
		}
	}
}

// confirmGone looks whether an account is not there any more.
func (d *driver) confirmGone(ctx context.Context, user string) error {
	for n := 0; ; n++ {
		_, err := d.account(ctx, user)
		if bmc.KindOf(err) == inventory.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		if n+1 >= d.looks {
			return inventory.Errorf(inventory.Unavailable, "the controller at %s took the order to delete the account %q, but still has it", d.host(), inventory.Clean(user, 40))
		}
		if err := d.sleep(ctx, d.every); err != nil {
			return d.unreached(ctx, err)
		}
	}
}

// DeleteUser removes an account, or empties its slot.
func (d *driver) DeleteUser(ctx context.Context, user string) (err error) {
	defer d.safe(&err)
	if user == d.user {
		return inventory.Errorf(inventory.Invalid, "%s is the account in use; it does not delete itself", d.name()).WithHint("log in with another account first")
	}
	a, err := d.account(ctx, user)
	if err != nil {
		return err
	}
	ans, err := d.do(ctx, http.MethodDelete, a.Path, nil, nil, "delete an account")
	if err == nil {
		return d.confirmGone(ctx, user)
	}
	// Only these two mean that accounts are slots. A 404 would mean here that somebody else has deleted it meanwhile.
	if ans == nil || ans.status != http.StatusMethodNotAllowed && ans.status != http.StatusNotImplemented {
		return err
	}
	// iDRAC wants it disabled before it loses its name.
	if err := d.patch(ctx, a.Path, map[string]any{"Enabled": false, "RoleId": "None"}, "disable an account"); err != nil {
		return err
	}
	// An empty name makes the slot free again.
	if err := d.patch(ctx, a.Path, map[string]any{"UserName": ""}, "empty an account"); err != nil {
		return err
	}
	return d.confirmGone(ctx, user)
}

// keepSecret makes sure that no error tells a password that is about to be set: controllers repeat what they refuse.
func (d *driver) keepSecret(password string) {
	d.connection.mu.Lock()
	defer d.connection.mu.Unlock()
	d.guard(password)
}
