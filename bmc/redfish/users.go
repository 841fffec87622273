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
}

// accounts reads all accounts, empty slots too, and where they are.
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
	docs, err := d.members(ctx, service.Accounts.ID, 256)
	if err != nil {
		return nil, "", err
	}
	var all []account
	for _, doc := range docs {
		var a account
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
	for _, a := range all {
		if a.UserName != "" {
			users = append(users, bmc.User{ID: clean(a.ID), Name: clean(a.UserName), Role: roleOf(a.RoleID), Enabled: a.Enabled})
		}
	}
	return users, nil
}

func roleOf(id string) string {
	switch id {
	case "Administrator":
		return "administrator"
	case "Operator":
		return "operator"
	case "ReadOnly":
		return "user"
	}
	return "none"
}

// CheckCredentials logs in anew and looks at the account's role. An account that is not listed comes from a directory;
// it counts as an administrator when it is shown the accounts of others, which only administrators are.
func (d *driver) CheckCredentials(ctx context.Context) (err error) {
	defer d.safe(&err)
	if err := d.endSession(ctx); err != nil && bmc.KindOf(err) != inventory.Unavailable {
		return err
	}
	all, _, err := d.accounts(ctx)
	if err != nil {
		return err
	}
	others := 0
	for _, a := range all {
		switch {
		case a.UserName == d.user && roleOf(a.RoleID) == "administrator":
			return nil
		case a.UserName == d.user:
			return inventory.Errorf(inventory.Unauthorized, "%s is no administrator of the controller at %s, but %q", d.name(), d.host(), clean(a.RoleID)).
				WithHint("give the account the role Administrator")
		case a.UserName != "":
			others++
		}
	}
	if others == 0 {
		return inventory.Errorf(inventory.Unauthorized, "the controller at %s shows no accounts to %s", d.host(), d.name()).WithHint("use an account that is an administrator")
	}
	return nil
}

// SetPassword changes an account's password. The driver goes on with the new one when it is its own.
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
	if user == d.user {
		d.setPassword(password)
	}
	return nil
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
	body := map[string]any{"UserName": user, "Password": password, "RoleId": "Administrator", "Enabled": true}
	ans, err := d.post(ctx, ref, body, "create an account")
	if err == nil || ans == nil || ans.status != http.StatusMethodNotAllowed && ans.status != http.StatusNotImplemented && ans.status != http.StatusNotFound {
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
		n, _ := strconv.Atoi(a.ID)
		if a.UserName == "" && (how.firstFreeSlot == 0 || n >= how.firstFreeSlot) {
			return d.patch(ctx, a.Path, body, "create an account")
		}
	}
	return inventory.Errorf(inventory.Conflict, "the controller at %s has no free account", d.host()).WithHint("delete one that is not used")
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
	if err == nil || ans == nil || ans.status != http.StatusMethodNotAllowed && ans.status != http.StatusNotImplemented {
		return err
	}
	// iDRAC wants it disabled before it loses its name.
	if err := d.patch(ctx, a.Path, map[string]any{"Enabled": false, "RoleId": "None"}, "disable an account"); err != nil {
		return err
	}
	return d.patch(ctx, a.Path, map[string]any{"UserName": ""}, "empty an account")
}

// keepSecret makes sure that no error tells a password that is about to be set: controllers repeat what they refuse.
func (d *driver) keepSecret(password string) {
	d.connection.mu.Lock()
	defer d.connection.mu.Unlock()
	d.guard(password)
}
