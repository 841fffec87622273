package images

import (
	"errors"
	"strings"
	"testing"

	"github.com/maruel/natural"

	"slipway.dev/slipway/inventory"
)

var (
	sumA = strings.Repeat("a", 64)
	sumB = strings.Repeat("b", 64)
)

func TestParseSumsReadsTheFormsThatPublishersUse(t *testing.T) {
	for name, c := range map[string]struct{ text, path, want string }{
		"sha256sum":                       {sumA + "  linux\n", "linux", sumA},
		"sha256sum of a binary":           {sumA + " *linux\n", "linux", sumA},
		"with a leading dot":              {sumA + "  ./netboot/linux\n", "netboot/linux", sumA},
		"with Windows line ends":          {sumA + "  linux\r\n", "linux", sumA},
		"capital digits":                  {strings.ToUpper(sumA) + "  linux", "linux", sumA},
		"a name with spaces":              {sumA + "  a b c", "a b c", sumA},
		"BSD":                             {"SHA256 (images/linux) = " + sumA + "\n", "images/linux", sumA},
		"a .treeinfo":                     {"[checksums]\nimages/pxeboot/vmlinuz = sha256:" + sumA + "\n\n[general]\narch = x86_64\n", "images/pxeboot/vmlinuz", sumA},
		"inside a signed message":         {"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n" + sumA + "  linux\n-----BEGIN PGP SIGNATURE-----\nabc\n", "linux", sumA},
		"beside sums of other kinds":      {strings.Repeat("c", 32) + "  linux\n" + sumA + "  linux\n" + strings.Repeat("d", 128) + "  linux\n", "linux", sumA},
		"made in a folder above":          {sumA + "  images/netboot/linux\n" + sumB + "  images/cdrom/linux\n", "netboot/linux", sumA},
		"made in a folder below":          {sumA + "  linux\n", "netboot/amd64/linux", sumA},
		"the longest agreement wins":      {sumA + "  amd64/linux\n" + sumB + "  linux\n", "netboot/amd64/linux", sumA},
		"the same content at many places": {sumA + "  a/linux\n" + sumA + "  b/linux\n", "linux", sumA},
		"the same line twice":             {sumA + "  linux\n" + sumA + "  linux\n", "linux", sumA},
		"a name that merely ends alike":   {sumA + "  vmlinux\n", "linux", ""},
		"BSD with brackets in the name":   {"SHA256 (images/linux (1).img) = " + sumA + "\n", "images/linux (1).img", sumA},
		"openssl dgst":                    {"SHA256(linux)= " + sumA + "\n", "linux", sumA},
		"openssl 3 dgst":                  {"SHA2-256(linux)= " + sumA + "\n", "linux", sumA},
		"one space":                       {sumA + " linux\n", "linux", sumA},
		"a tab":                           {sumA + "\tlinux\n", "linux", sumA},
		"a binary with spaces":            {sumA + " *my disk.img\n", "my disk.img", sumA},
		"a name that begins with a space": {sumA + "   linux\n", " linux", sumA},
		"a name with a backslash":         {`\` + sumA + `  a\\b` + "\n", `a\b`, sumA},
		"with a byte order mark":          {"\ufeff" + sumA + "  linux\n", "linux", sumA},
		"a folder that merely ends alike": {sumA + "  xnetboot/linux\n", "netboot/linux", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ParseSums([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			d, ok, err := s.Find(c.path)
			if err != nil || ok != (c.want != "") || ok && d.SHA256.Hex() != c.want {
				t.Errorf("got %s %v %v, want %s", d, ok, err, c.want)
			}
		})
	}
}

func TestParseSumsRefusesWhatDecidesNothing(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":             "",
		"a web page":          "<html><body>Please log in</body></html>",
		"only MD5":            strings.Repeat("c", 32) + "  linux\n",
		"two sums for a path": sumA + "  linux\n" + sumB + "  ./linux\n",
		"an endless line":     strings.Repeat("x", 70_000),
	} {
		_, err := ParseSums([]byte(text))
		var e *inventory.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := ParseSums([]byte(sumA + "  a/linux\n" + sumB + "  b/linux\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Find("linux")
	wantError(t, err, inventory.Invalid, "different sums that could be for linux: a/linux, b/linux")
}

func TestNewerComparesTheNumbersInNames(t *testing.T) {
	order := []string{"", "a", "a-24.04-x", "a-24.04.2-x", "a-24.04.10-x", "a-24.10-x", "b"}
	for i := range order {
		for j := range order {
			if got := natural.Less(order[j], order[i]); got != (i > j) {
				t.Errorf("Less(%q, %q) is %v", order[j], order[i], got)
			}
		}
	}
}

func FuzzParseSums(f *testing.F) {
	f.Add([]byte(sumA+"  linux\n"+sumB+" *a/b\n"), "linux")
	f.Add([]byte("SHA256 (x) = "+sumA), "y/x")
	f.Add([]byte("SHA512 (x) = "+sumA+sumB+"\n"+sumA), "y/x")
	f.Add([]byte(`\\`+sumA+`  a\\b`), "y/x")
	f.Add([]byte("x = sha256:"+sumA+"\n= sha256:"), "../x")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		s, err := ParseSums(text)
		if err != nil {
			return
		}
		if len(s.byPath)+len(s.bare) == 0 {
			t.Fatal("an empty list was accepted")
		}
		for p, d := range s.byPath {
			if got, ok, err := s.Find(p); !ok || err != nil || got != d {
				t.Fatalf("%q is not found under its own name: %v %v", p, ok, err)
			}
			if _, err := inventory.ParseDigest(string(d.SHA256)); (err != nil || d.SHA256 == "") && !isHex(d.SHA512, 128) {
				t.Fatal(err)
			}
		}
		d, ok, err := s.Find(name)
		if ok && (err != nil || d == Sum{}) {
			t.Fatalf("found %q as %v, %v", name, d, err)
		}
		s.Match(name)
	})
}
