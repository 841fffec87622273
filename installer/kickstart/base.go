package kickstart

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

var plainRE = regexp.MustCompile(`^[A-Za-z0-9_./:,=+@^-]+$`)

// word says text as one word of a command: pykickstart splits lines as a shell does.
func (w *writer) word(path, text string) string {
	if installer.HasControl(text) {
		w.report.Errorf(path, "not-expressible", "holds a line break or control character, which a line of a kickstart file cannot carry").
			Hint = "take it out"
		return "''"
	}
	if plainRE.MatchString(text) && !late.HasMarker(text) {
		return text
	}
	return late.ShellWord(text)
}

// option says --name=value; nothing if the value is empty.
func (w *writer) option(path, name, value string) string {
	if value == "" {
		return ""
	}
	return " --" + name + "=" + w.word(path, value)
}

// release is the major release of Enterprise Linux; Fedora's are larger than all of them. An image of one's own has a
// release of one's own: what installs it is the version of its format, such as 9 or RHEL9.
func (w *writer) release() int {
	major, _, _ := strings.Cut(w.t.Release, ".")
	if w.t.OS == "custom" {
		major, _, _ = strings.Cut(strings.TrimLeftFunc(w.t.Tool, unicode.IsLetter), ".")
	}
	n, _ := strconv.Atoi(major) // 0 for a release without a number, which is taken for the newest
	return cmp.Or(n, 1000)
}

// base says how to install, and what the machine is called.
func (w *writer) base() {
	h := w.c.Host
	w.command("text")
	w.command("eula --agreed")
	w.command("firstboot --disable")
	if w.c.Boot.PowerAfter == machineconfig.PowerOff {
		w.command("poweroff")
	} else {
		w.command("reboot")
	}
	locale := cmp.Or(h.Locale, "en_US.UTF-8")
	w.command("lang", w.word("/host/locale", locale))
	keymap := cmp.Or(h.Keymap, "us")
	w.command("keyboard" + w.option("/host/keymap", "vckeymap", keymap))
	w.time()
	if id := h.MachineID; id != "" {
		w.postLine("printf '%s\\n' "+late.ShellWord(id)+" > /etc/machine-id", "chmod 0444 /etc/machine-id")
	}
}

// time says the time zone and the time servers, which moved to a command of their own with Enterprise Linux 9.
func (w *writer) time() {
	zone := cmp.Or(w.c.Host.Timezone, "Etc/UTC")
	line := "timezone " + w.word("/host/timezone", zone) + " --utc"
	off := w.c.Time.Enabled != nil && !*w.c.Time.Enabled
	if w.release() < 9 {
		if off {
			line += " --nontp"
		} else if n := w.c.Time.NTPServers; len(n) > 0 {
			line += w.option("/time", "ntpservers", strings.Join(n, ","))
		}
		w.command(line)
		return
	}
	w.command(line)
	if off {
		w.command("timesource --ntp-disable")
		return
	}
	for _, s := range w.c.Time.NTPServers {
		w.command("timesource" + w.option("/time", "ntp-server", s))
	}
}

// accounts says the users and groups. Root has no password: it is locked unless a user of that name is given.
func (w *writer) accounts() {
	root := slices.IndexFunc(w.c.Users, func(u machineconfig.User) bool { return u.Name == "root" })
	if root < 0 || w.c.Users[root].PasswordHash == "" {
		w.command("rootpw --lock")
	} else {
		u := w.c.Users[root]
		lock := ""
		if u.LockPassword != nil && *u.LockPassword {
			lock = " --lock"
		}
		w.command("rootpw --iscrypted" + lock + " " + w.word("/users/root/passwordHash", hash(u.PasswordHash)))
	}
	system := map[string]bool{}
	for _, g := range w.c.Groups {
		path := pointer.Of("groups", g.Name)
		if g.System && g.GID == nil {
			system[g.Name] = true
			w.postLine("getent group " + shWord(g.Name) + " >/dev/null || groupadd --system -- " + shWord(g.Name))
			continue
		}
		if slices.ContainsFunc(w.c.Users, func(u machineconfig.User) bool { return u.Name == g.Name && ownGroup(u) }) {
			continue // comes with the user
		}
		line := "group" + w.option(path, "name", g.Name)
		if g.GID != nil {
			line += " --gid=" + strconv.Itoa(*g.GID)
		}
		w.command(line)
	}
	for i := range w.c.Users {
		w.user(&w.c.Users[i], system)
	}
}

func (w *writer) user(u *machineconfig.User, system map[string]bool) {
	path := pointer.Of("users", u.Name)
	var late []string // groups that exist only when the script runs
	var groups []string
	for _, g := range u.Groups {
		if system[g] || u.System {
			late = append(late, g)
		} else {
			groups = append(groups, g)
		}
	}
	switch {
	case u.Name == "root":
		late = u.Groups
	case u.System:
		w.systemUser(u)
	default:
		line := "user" + w.option(path, "name", u.Name) + w.option(path+"/groups", "groups", strings.Join(groups, ",")) +
			w.option(path+"/gecos", "gecos", u.Gecos) + w.option(path+"/home", "homedir", u.Home) + w.option(path+"/shell", "shell", u.Shell)
		if u.UID != nil {
			line += " --uid=" + strconv.Itoa(*u.UID)
		}
		for _, g := range w.c.Groups {
			if g.Name == u.Name && g.GID != nil && ownGroup(*u) {
				line += " --gid=" + strconv.Itoa(*g.GID)
			}
		}
		if u.PasswordHash != "" {
			line += " --iscrypted" + w.option(path+"/passwordHash", "password", hash(u.PasswordHash))
		}
		if u.PasswordHash == "" || u.LockPassword != nil && *u.LockPassword {
			line += " --lock"
		}
		w.command(line)
	}
	if g := u.PrimaryGroup; g != "" && g != u.Name && !u.System {
		w.postLine("usermod --gid " + shWord(g) + " -- " + shWord(u.Name))
	}
	if len(late) > 0 {
		w.postLine("usermod --append --groups " + shWord(strings.Join(late, ",")) + " -- " + shWord(u.Name))
	}
	switch {
	case len(u.SSHKeys) == 1 && !u.System: // pykickstart takes a second key of a user for a mistake
		w.command("sshkey" + w.option(path, "username", u.Name) + " " + w.quoted(path+"/sshKeys", u.SSHKeys[0]))
	case len(u.SSHKeys) > 0:
		w.keys(u)
	}
	if u.Sudo != "" {
		w.file("/etc/sudoers.d/slipway-"+sudoersName(u.Name), 0o440, "", "", u.Name+" "+u.Sudo+"\n", path+"/sudo")
	}
}

// ownGroup reports whether Anaconda makes a group of the user's name with the user.
func ownGroup(u machineconfig.User) bool {
	return !u.System && u.Name != "root" && (u.PrimaryGroup == "" || u.PrimaryGroup == u.Name)
}

// systemUser makes an account below 1000, which no command of kickstart can.
func (w *writer) systemUser(u *machineconfig.User) {
	line := "useradd --system"
	add := func(name, value string) {
		if value != "" {
			line += " --" + name + " " + shWord(value)
		}
	}
	add("comment", u.Gecos)
	add("home-dir", u.Home)
	add("shell", u.Shell)
	add("gid", u.PrimaryGroup)
	add("password", hash(u.PasswordHash))
	if u.UID != nil {
		add("uid", strconv.Itoa(*u.UID))
	}
	if u.Home != "" {
		line += " --create-home"
	}
	w.postLine("id -u " + shWord(u.Name) + " >/dev/null 2>&1 || " + line + " -- " + shWord(u.Name))
	if u.PasswordHash != "" && u.LockPassword != nil && *u.LockPassword {
		w.postLine("usermod --lock -- " + shWord(u.Name))
	}
}

// keys writes what the sshkey command cannot.
func (w *writer) keys(u *machineconfig.User) {
	name := shWord(u.Name)
	w.postLine(
		`home="$(getent passwd `+name+` | cut -d: -f6)"`,
		`group="$(id -g `+name+`)"`,
		`install -d -m 0700 -o `+name+` -g "$group" "$home/.ssh"`,
		`printf '%s\n' `+installer.Words(u.SSHKeys)+` > "$home/.ssh/authorized_keys"`,
		`chmod 0600 "$home/.ssh/authorized_keys"`,
		`chown `+name+`:"$group" "$home/.ssh/authorized_keys"`,
	)
}

// quoted is word with quotes in any case, as a key needs them.
func (w *writer) quoted(path, text string) string {
	if q := w.word(path, text); strings.HasPrefix(q, "'") {
		return q
	}
	return late.ShellWord(text)
}

// sudoersName is a name of a file that sudo reads: it skips those with a dot.
func sudoersName(user string) string {
	return strings.NewReplacer(".", "_", "~", "_", "/", "_").Replace(user)
}

func shWord(s string) string { return late.ShellWord(s) }

// hash is a password hash, or the marker of the secret that is one.
func hash(h string) string {
	if strings.HasPrefix(h, "secret://") {
		return late.Marker(h)
	}
	return h
}

// bootloader says the kernel's arguments.
func (w *writer) bootloader() {
	line := "bootloader"
	if a := w.c.Kernel.Args; len(a) > 0 {
		line += " --append=" + w.quoted("/kernel/args", strings.Join(a, " "))
	}
	w.command(line)
	if a := w.c.Kernel.RemoveArgs; len(a) > 0 {
		w.postLine("grubby --update-kernel=ALL --remove-args=" + shWord(strings.Join(a, " ")))
	}
}
