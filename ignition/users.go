package ignition

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// core is the only user that RHCOS lets a document change.
const core = "core"

func (r *rendering) users() {
	var withPassword []string
	for _, g := range r.c.Groups {
		if r.os.isOneOf(variantOpenShift) {
			continue // unsupported says so
		}
		r.from["passwd.groups."+strconv.Itoa(len(r.b.Passwd.Groups))] = pointer.Of("groups", g.Name)
		r.b.Passwd.Groups = append(r.b.Passwd.Groups, passwdGroup{Name: g.Name, GID: g.GID, System: isTrue(g.System)})
	}
	r.defaultUser()
	for _, u := range r.c.Users {
		r.user(u)
		if u.PasswordHash != "" && u.LockPassword != nil && !*u.LockPassword {
			withPassword = append(withPassword, u.Name)
		}
	}
	if len(withPassword) > 0 {
		slices.Sort(withPassword)
		// A Match block goes before what the OS's own drop-ins say, and ends with this file.
		r.text("/etc/ssh/sshd_config.d/10-"+r.own+".conf", 0o600,
			"Match User "+strings.Join(withPassword, ",")+"\n\tPasswordAuthentication yes\n", "/users")
	}
}

// defaultUser changes the user core, or takes it away.
func (r *rendering) defaultUser() {
	d := r.c.DefaultUser
	const from = "/defaultUser"
	switch {
	case d == nil:
		return
	case slices.ContainsFunc(r.c.Users, func(u machineconfig.User) bool { return u.Name == core }):
		r.report.Errorf(from, "duplicate", "is the user core, which is one of users too").Hint = "say it in one place"
		return
	case d.Name != "" && d.Name != core:
		r.notExpressible(from+"/name", "the image's user is core, which Ignition cannot rename: remove it, and add another user")
		return
	case d.State == machineconfig.RemoveUser && r.os.isOneOf(variantOpenShift):
		r.notExpressible(from, "on RHCOS a document can change the SSH keys and the password of the user core only")
		return
	case d.State == machineconfig.RemoveUser && Compare(r.at.spec, "3.2.0") < 0:
		r.notExpressible(from, "to remove a user needs spec 3.2, this image reads "+r.at.spec)
		return
	case d.State == machineconfig.RemoveUser:
		r.from["passwd.users."+strconv.Itoa(len(r.b.Passwd.Users))] = from
		r.b.Passwd.Users = append(r.b.Passwd.Users, passwdUser{Name: core, ShouldExist: ref(false)})
		return
	}
	r.user(machineconfig.User{
		Name: core, Gecos: d.Gecos, Shell: d.Shell, Groups: d.Groups, PasswordHash: d.PasswordHash, LockPassword: d.LockPassword, Sudo: d.Sudo,
		SSHKeys: d.SSHKeys,
	})
}

func isTrue(b bool) *bool {
	if b {
		return &b
	}
	return nil
}

func (r *rendering) user(u machineconfig.User) {
	from := pointer.Of("users", u.Name)
	if r.os.isOneOf(variantOpenShift) {
		if u.Name != core || u.UID != nil || u.System || len(u.Groups) > 0 || u.Gecos+u.Home+u.Shell+u.PrimaryGroup != "" {
			r.notExpressible(from, "on RHCOS a document can change the SSH keys and the password of the user core only")
			return
		}
	}
	out := passwdUser{
		Name: u.Name, PasswordHash: passwordHash(u), SSHKeys: u.SSHKeys, UID: u.UID, Gecos: r.line(from, u.Gecos), Home: u.Home,
		PrimaryGroup: u.PrimaryGroup, Groups: u.Groups, Shell: u.Shell, System: isTrue(u.System),
	}
	r.from["passwd.users."+strconv.Itoa(len(r.b.Passwd.Users))] = from
	r.b.Passwd.Users = append(r.b.Passwd.Users, out)
	if u.Sudo != "" {
		r.text("/etc/sudoers.d/"+sudoersName(u.Name), 0o440, u.Name+" "+r.line(from, u.Sudo)+"\n", from)
	}
}

// passwordHash is the hash, or a marker of it; an exclamation mark in front locks it, as usermod -L does.
func passwordHash(u machineconfig.User) string {
	hash := u.PasswordHash
	if strings.HasPrefix(hash, "secret://") {
		hash = late.Marker(hash)
	}
	switch {
	case u.LockPassword == nil || !*u.LockPassword:
		return hash
	case hash == "":
		return "*"
	}
	return "!" + hash
}

var sudoersRE = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// sudoersName is a file name that sudo reads: it skips those with a dot or a tilde.
func sudoersName(user string) string { return sudoersRE.ReplaceAllString(user, "_") }
