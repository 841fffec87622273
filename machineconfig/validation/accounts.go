package validation

import (
	"encoding/base64"
	"encoding/binary"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

const maxID = 1<<32 - 2 // of users and groups; the highest number means nobody

// accounts checks users and groups.
type accounts struct{ *checker }

func (v accounts) check() {
	var names []string
	gids := map[int]string{}
	for i := range v.c.Groups {
		g := &v.c.Groups[i]
		at := pointer.Add("/groups", g.Name)
		names = append(names, g.Name)
		v.match(at, g.Name, accountRE, "the name of a group", accountHint)
		v.id(pointer.Add(at, "gid"), g.GID, g.Name, gids)
	}
	v.duplicates("/groups", names)
	names = nil
	uids := map[int]string{}
	for i := range v.c.Users {
		u := &v.c.Users[i]
		at := pointer.Add("/users", u.Name)
		names = append(names, u.Name)
		v.match(at, u.Name, accountRE, "the name of a user", accountHint)
		v.id(pointer.Add(at, "uid"), u.UID, u.Name, uids)
		v.user(at, u)
	}
	v.duplicates("/users", names)
}

func (v accounts) id(at string, id *int, name string, seen map[int]string) {
	if id == nil {
		return
	}
	if *id < 0 || *id > maxID {
		v.invalid(at, "", "%d is not between 0 and %d", *id, maxID)
	}
	if other, twice := seen[*id]; twice {
		v.r.Errorf(at, "duplicate", "%d is the number of %s too", *id, shown(other))
	}
	seen[*id] = name
}

func (v accounts) user(at string, u *machineconfig.User) {
	for key, s := range map[string]string{"home": u.Home, "shell": u.Shell} {
		if s != "" {
			v.absolute(pointer.Add(at, key), s)
		}
	}
	if v.oneLine(pointer.Add(at, "gecos"), u.Gecos, 255) && strings.Contains(u.Gecos, ":") {
		v.invalid(pointer.Add(at, "gecos"), "", "holds a colon, which ends a field of /etc/passwd")
	}
	if u.PrimaryGroup != "" {
		v.match(pointer.Add(at, "primaryGroup"), u.PrimaryGroup, accountRE, "the name of a group", accountHint)
	}
	v.atMost(pointer.Add(at, "groups"), len(u.Groups), 256)
	for i, g := range u.Groups {
		v.match(at+"/groups/"+strconv.Itoa(i), g, accountRE, "the name of a group", accountHint)
	}
	v.password(at, u)
	v.sudo(pointer.Add(at, "sudo"), u)
	v.atMost(pointer.Add(at, "sshKeys"), len(u.SSHKeys), 256)
	for i, k := range u.SSHKeys {
		v.sshKey(at+"/sshKeys/"+strconv.Itoa(i), k)
	}
}

// cryptRE has a form for each method of crypt(5) that systems of today read.
var cryptRE = regexp.MustCompile(`^(\$6\$(rounds=\d{4,9}\$)?[./0-9A-Za-z]{1,16}\$[./0-9A-Za-z]{86}` +
	`|\$5\$(rounds=\d{4,9}\$)?[./0-9A-Za-z]{1,16}\$[./0-9A-Za-z]{43}` +
	`|\$2[abxy]\$\d\d\$[./0-9A-Za-z]{53}` +
	`|\$(y|gy|7)\$[./0-9A-Za-z]+(\$[./0-9A-Za-z]{1,86})?\$[./0-9A-Za-z]{43}` +
	`|\$1\$[./0-9A-Za-z]{1,8}\$[./0-9A-Za-z]{22})$`)

// password never shows the value: it may be a password after all.
func (v accounts) password(at string, u *machineconfig.User) {
	h := u.PasswordHash
	p := pointer.Add(at, "passwordHash")
	const hint = "make one with: openssl passwd -6, or refer to one with secret://NAME"
	switch {
	case h == "":
		if u.LockPassword != nil && !*u.LockPassword {
			v.r.Errorf(pointer.Add(at, "lockPassword"), "missing", "allows a password, but there is none: everybody could log in").
				Hint = "add passwordHash: " + hint
		}
	case strings.HasPrefix(h, "secret://"):
		v.secret(p, h)
	case strings.Trim(h, "!*") == "" || strings.HasPrefix(h, "!"):
		v.invalid(p, "leave it out and write lockPassword: true", "is a locked password")
	case !cryptRE.MatchString(h) && strings.HasPrefix(h, "$"):
		v.invalid(p, hint, "is not a complete crypt(3) hash")
	case !cryptRE.MatchString(h):
		v.invalid(p, hint, "is not a crypt(3) hash: a plain password would be stored readably")
	case strings.HasPrefix(h, "$1$"):
		v.r.Warnf(p, "weak", "is an MD5 hash, which is quickly guessed").Hint = hint
	}
}

func (v accounts) sudo(at string, u *machineconfig.User) {
	if u.Sudo == "" || !v.oneLine(at, u.Sudo, 1024) {
		return
	}
	switch {
	case strings.HasPrefix(u.Sudo, u.Name+" "):
		v.invalid(at, "write "+strings.TrimSpace(strings.TrimPrefix(u.Sudo, u.Name)), "begins with the user's name, which is added")
	case !strings.Contains(u.Sudo, "="):
		v.invalid(at, "write it as ALL=(ALL) NOPASSWD:ALL", "%s is not a sudoers rule", shown(u.Sudo))
	}
}

var sshKeyTypes = []string{
	"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
	"sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com", "ssh-dss",
}

// sshKey checks a line of authorized_keys: options, type, key and comment. The key begins with its type, by its length
// (RFC 4253 section 6.6).
func (v accounts) sshKey(at, line string) {
	switch {
	case strings.Contains(line, "PRIVATE KEY"):
		v.invalid(at, "give the public key, and do not use this one any more", "is a private key")
		return
	case strings.ContainsFunc(line, isControl):
		v.invalid(at, "write each key as an item of its own, on one line", "has more than one line")
		return
	case len(line) > 16384:
		v.invalid(at, "", "is %d bytes long; at most 16384 are allowed", len(line))
		return
	}
	fields := authorizedFields(line)
	i := slices.IndexFunc(fields, func(f string) bool { return slices.Contains(sshKeyTypes, f) })
	if i < 0 || i > 1 || i+1 >= len(fields) {
		v.invalid(at, "write it as in a .pub file: ssh-ed25519 AAAA... name", "%s is not an SSH key", shown(line[:min(len(line), 40)]))
		return
	}
	blob, err := base64.StdEncoding.DecodeString(fields[i+1])
	if err != nil || len(blob) < 4 {
		v.invalid(at, "copy the whole line of the .pub file", "has a key that is not base64")
		return
	}
	n := binary.BigEndian.Uint32(blob)
	typ := fields[i]
	if int(n) != len(typ) || !strings.HasPrefix(string(blob[4:]), typ) || typ == "ssh-ed25519" && len(blob) != 51 || len(blob) < 4+len(typ)+32 {
		v.invalid(at, "copy the whole line of the .pub file", "is not a complete %s key", typ)
		return
	}
	if typ == "ssh-dss" {
		v.r.Warnf(at, "weak", "is a DSA key, which OpenSSH does not accept any more").Hint = "make one with: ssh-keygen -t ed25519"
	}
}

// authorizedFields splits a line of authorized_keys at blanks outside of quotes.
func authorizedFields(line string) []string {
	quoted, escaped := false, false
	return strings.FieldsFunc(line, func(r rune) bool {
		wasEscaped := escaped
		escaped = r == '\\' && !escaped
		if r == '"' && !wasEscaped {
			quoted = !quoted
		}
		return (r == ' ' || r == '\t') && !quoted
	})
}
