package httpboot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

const (
	sid = "0123456789abcdef0123456789abcdef"
	hex = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
)

func TestEveryURLOfABootIsUnderstood(t *testing.T) {
	d := inventory.Digest("sha256:" + hex)
	for _, c := range []struct {
		path string
		want route
	}{
		{"/boot/snponly.efi", route{place: loader, name: "snponly.efi"}},
		{"/boot/" + sid + "/snponly.efi", route{place: loader, session: sid, name: "snponly.efi"}},
		{"/boot/autoexec.ipxe", route{place: autoexec, name: "autoexec.ipxe"}},
		{"/boot/ask", route{place: ask, name: "ask"}},
		{"/boot/" + sid + "/ask", route{place: ask, session: sid, name: "ask"}},
		{"/boot/script", route{place: script, name: "script"}},
		{"/boot/" + sid + "/script", route{place: script, session: sid, name: "script"}},
		{"/boot/" + sid + "/report", route{place: report, session: sid, name: "report"}},
		{"/boot/" + sid + "/artefact/" + hex + "/linux", route{place: artefact, session: sid, name: "linux", digest: d}},
		{"/boot/artefact/" + hex + "/linux", route{place: artefact, name: "linux", digest: d}},
		{"//boot///" + sid + "//snponly.efi", route{place: loader, session: sid, name: "snponly.efi"}},
		{"/boot/%73nponly.efi", route{place: loader, name: "snponly.efi"}},
		{"/boot/" + sid + "/artefact/" + hex + "/with+plus_and-1.2", route{place: artefact, session: sid, name: "with+plus_and-1.2", digest: d}},

		{"/boot/" + sid + "/report/0123", route{place: report, session: sid, name: "report", key: "0123"}},
		{"/boot/" + sid + "/" + sid + "/agent/task", route{place: task, session: sid, name: "task", key: sid}},
		{"/boot/" + sid + "/" + sid + "/agent/report", route{place: told, session: sid, name: "report", key: sid}},
		{"/boot/" + sid + "/agent/report", route{place: told, session: sid, name: "report"}},
		{"/boot/" + sid + "/config/user-data", route{place: document, session: sid, name: "user-data"}},
		{"/boot/" + sid + "/config/", route{place: document, session: sid}},
		{"/boot/" + sid + "/config", route{place: document, session: sid}},
		{"/boot/" + sid + "/config//user-data", route{place: document, session: sid, name: "user-data"}},
		{"/boot/" + sid + "/config/ec2/latest/meta-data/", route{place: document, session: sid, name: "ec2/latest/meta-data/"}},
		{"/boot/" + sid + "/" + sid + "/config/user-data", route{place: document, session: sid, name: "user-data", key: sid}},
		{"/boot/" + sid + "/" + sid + "/config", route{place: document, session: sid, key: sid}},
		{"/boot/" + sid + "/" + sid + "/" + sid + "/config", route{}},
		{"/boot/" + sid + "/short/config/user-data", route{}},
		{"/boot/" + sid + "/config.cpio", route{place: archive, session: sid, name: "config.cpio"}},

		{"/boot/report/0123", route{}},
		{"/boot/config/user-data", route{}},
		{"/boot/" + sid + "/config/../../etc/passwd", route{}},
		{"/boot/" + sid + "/config/a%2fb", route{}},
		{"/boot/" + sid + "/config/1/2/3/4/5/6/7", route{}},
		{"", route{}},
		{"/", route{}},
		{"*", route{}},
		{"/boot", route{}},
		{"/boot/", route{}},
		{"/boot/" + sid, route{}},
		{"/Boot/ask", route{}},
		{"/boot/pxeboot.n12", route{}},
		{"/boot/../boot/ask", route{}},
		{"/boot/./ask", route{}},
		{"/boot/%2e%2e/etc/passwd", route{}},
		{"/boot/..%2f..%2fetc%2fpasswd", route{}},
		{`/boot/..%5cetc`, route{}},
		{"/boot/ask%00", route{}},
		{"/boot/ask%0d%0aX-Header:1", route{}},
		{"/boot/%zz", route{}},
		{"/boot/snponly.efi/more", route{}},
		{"/boot/" + strings.ToUpper(sid) + "/ask", route{}},
		{"/boot/" + sid[1:] + "/ask", route{}},
		{"/boot/" + sid + "/" + sid + "/ask", route{}},
		{"/boot/" + sid + "/artefact/" + hex, route{}},
		{"/boot/" + sid + "/artefact/sha256:" + hex + "/linux", route{}},
		{"/boot/" + sid + "/artefact/" + strings.ToUpper(hex) + "/linux", route{}},
		{"/boot/" + sid + "/artefact/" + hex + "/a/b", route{}},
		{"/boot/" + sid + "/artefact/" + hex + "/..", route{}},
		{"/boot/" + sid + "/artefact/" + hex + "/a%2fb", route{}},
		{"/boot/" + sid + "/artefact/" + hex + "/a%5cb", route{}},
		{"/boot/" + strings.Repeat("/", 2000) + "ask", route{}},
	} {
		if d := cmp.Diff(c.want, parsePath(c.path), cmp.AllowUnexported(route{})); d != "" {
			t.Errorf("%s: %s", c.path, d)
		}
	}
}

func TestEveryURLThatScriptsAreMadeOfIsARoute(t *testing.T) {
	f := inventory.ImageArtefact{Role: inventory.RoleKernel, Name: "vmlinuz-6.1_x+y", Digest: inventory.Digest("sha256:" + hex)}
	for _, s := range []inventory.SessionID{"", sid} {
		urls := map[string]place{
			pxe.URL("", s, "ask"): ask, pxe.URL("", s, "script"): script, pxe.URL("", s, "report"): report,
			pxe.URL("", s, pxe.AutoexecName):  autoexec,
			pxe.URL("", s, pxe.ConfigArchive): archive, pxe.ArtefactURL("", s, f): artefact,
		}
		for _, l := range pxe.Loaders() {
			urls[pxe.URL("", s, l.Name)] = loader
		}
		for u, want := range urls {
			if got := parsePath(u); got.place != want || got.session != s {
				t.Errorf("%s is taken for %+v, want %s", u, got, want)
			}
		}
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("/boot/" + sid + "/artefact/" + hex + "/linux")
	f.Add("//boot//snponly.efi")
	f.Add("/boot/..%2f..%2fetc%2fpasswd")
	f.Add("/boot/%")
	f.Fuzz(func(t *testing.T, path string) {
		r := parsePath(path)
		if r.place == nowhere {
			if r != (route{}) {
				t.Errorf("%q is nowhere, yet %+v", path, r)
			}
			return
		}
		if strings.ContainsAny(r.name, "/\\\x00\r\n ") || r.name == "" || r.name == ".." || len(r.name) > maxName ||
			r.session != "" && !isSession(string(r.session)) || (r.place == artefact) != (r.digest != "") {
			t.Errorf("%q is taken for %+v", path, r)
		}
		again := pxe.URL("", r.session, r.name)
		if r.place == artefact {
			again = pxe.ArtefactURL("", r.session, inventory.ImageArtefact{Name: r.name, Digest: r.digest})
		}
		// What we write for the same thing is read as the same, unless its name has letters that no URL of ours has.
		if strings.Trim(r.name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") == "" && parsePath(again) != r {
			t.Errorf("%q is %+v, %q is %+v", path, r, again, parsePath(again))
		}
	})
}
