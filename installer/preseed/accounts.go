package preseed

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// groups are those that a new Debian system has, so that the installer can put a user into them.
var groups = []string{"adm", "audio", "cdrom", "dialout", "dip", "disk", "floppy", "games", "kmem", "operator", "plugdev", "staff", "sudo", "tape", "users", "video", "www-data"}

// accounts says one user with a password, so that the machine can be entered should its cloud-init fail. Root's
// password is locked, unless one is given. All users are in the seed as well, with their keys, rules and groups.
func (w *writer) accounts() {
	w.comment("Accounts")
	root := "!"
	for _, u := range w.c.Users {
		if u.Name == "root" && isOpen(u) {
			root = hash(u.PasswordHash)
		}
	}
	w.answer("", "passwd/root-login", "boolean", "true")
	w.answer("/users/root/passwordHash", "passwd/root-password-crypted", "password", root)
	i := slices.IndexFunc(w.c.Users, isSimple)
	if i < 0 {
		w.answer("", "passwd/make-user", "boolean", "false")
		return
	}
	u := w.c.Users[i]
	path := pointer.Of("users", u.Name)
	full := cmp.Or(u.Gecos, u.Name)
	w.answer("", "passwd/make-user", "boolean", "true")
	w.answer(path+"/gecos", "passwd/user-fullname", "string", full)
	w.answer(path+"/name", "passwd/username", "string", u.Name)
	w.answer(path+"/passwordHash", "passwd/user-password-crypted", "password", hash(u.PasswordHash))
	if u.UID != nil {
		w.answer(path+"/uid", "passwd/user-uid", "string", strconv.Itoa(*u.UID))
	}
	w.answer(path+"/groups", "passwd/user-default-groups", "string", strings.Join(u.Groups, " "))
}

func isOpen(u machineconfig.User) bool {
	return u.PasswordHash != "" && (u.LockPassword == nil || !*u.LockPassword)
}

// isSimple reports whether the installer can make the user as the configuration wants it.
func isSimple(u machineconfig.User) bool {
	return u.Name != "root" && isOpen(u) && !u.System && u.Home == "" && u.Shell == "" && u.PrimaryGroup == "" &&
		!strings.ContainsAny(u.Gecos, ",:") && (u.UID == nil || *u.UID >= 1000) &&
		!slices.ContainsFunc(u.Groups, func(g string) bool { return !slices.Contains(groups, g) })
}

// hash is a password hash, or the marker of the secret that is one.
func hash(h string) string {
	if strings.HasPrefix(h, "secret://") {
		return late.Marker(h)
	}
	return h
}
