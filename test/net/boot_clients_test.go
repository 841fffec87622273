package net_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/admission"
)

const (
	bootBase = "http://10.78.1.1"
	bootID   = "0123456789abcdef0123456789abcdef"
)

// artefact puts a file of random bytes into the server's folder and returns it with its URL.
func (r *bootRack) artefact(size int) (data []byte, url string) {
	r.T.Helper()
	data = make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(data)
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	if err := os.WriteFile(filepath.Join(r.artefacts, name), data, 0o644); err != nil {
		r.T.Fatal(err)
	}
	return data, bootBase + "/boot/" + bootID + "/artefact/" + name + "/linux"
}

// out names a file for a client to write to.
func (r *bootRack) out(name string) string { return filepath.Join(r.Dir, name) }

func (r *bootRack) same(file string, want []byte) {
	r.T.Helper()
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		r.T.Errorf("%s: %d of %d bytes, %v", filepath.Base(file), len(got), len(want), err)
	}
}

func (r *bootRack) curl(args ...string) (string, error) {
	return r.Try(60*time.Second, "ip", append([]string{"netns", "exec", r.machine, "curl", "-sS"}, args...)...)
}

func loadersOfDebian(t *testing.T) *images.Loaders {
	t.Helper()
	l, err := images.LoadLoaders(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !l.Has("snponly.efi") {
		t.Skip("needs Debian's package ipxe; run: apt-get install ipxe")
	}
	return l
}

// TestBootContract checks that whatever DHCP can name is served by TFTP and by HTTP, byte for byte as it is installed.
func TestBootContract(t *testing.T) {
	r := newBootRack(newLab(t, "curl", "atftp"), bootSetup{})
	loaders := loadersOfDebian(t)
	for _, row := range pxe.Loaders() {
		t.Run(row.Name, func(t *testing.T) {
			want, ok := loaders.Find(row.Name)
			if !ok && row.Package == "" {
				t.Skipf("Debian has no package of %s; it comes from a folder that an admin names with --loaders", row.Name)
			} else if !ok {
				t.Skipf("%s is not installed; run: apt-get install %s", row.Name, row.Package)
			}
			byHTTP, byTFTP := r.out("http-"+row.Name), r.out("tftp-"+row.Name)
			head, err := r.curl("-f", "-D", "-", "-o", byHTTP, bootBase+"/boot/"+row.Name)
			if err != nil || !strings.Contains(head, "Content-Type: "+row.Type+"\r\n") || !strings.Contains(head, `Etag: "`+want.SHA256.Hex()+`"`) {
				t.Errorf("http: %v\n%s", err, head)
			}
			r.same(byHTTP, want.Data)
			r.In(r.machine, "atftp", "--get", "--remote-file", row.Name, "--local-file", byTFTP, "--option", "blksize 1468", "10.78.1.1")
			r.same(byTFTP, want.Data)
		})
	}
	r.In(r.machine, "atftp", "--get", "--remote-file", "autoexec.ipxe", "--local-file", r.out("autoexec"), "10.78.1.1")
	r.same(r.out("autoexec"), []byte("#!ipxe\necho ask  10.78.1.10 "+bootBase+"\n"))
	if got, err := r.curl("-f", bootBase+"/boot/autoexec.ipxe"); err != nil || got != "#!ipxe\necho ask  10.78.1.10 "+bootBase+"\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestBootCurl(t *testing.T) {
	r := newBootRack(newLab(t, "curl"), bootSetup{})
	loaders := loadersOfDebian(t)
	data, url := r.artefact(64 << 20) // more than the buffers of both ends hold

	head, err := r.curl("-f", "-I", url)
	if err != nil || !strings.Contains(head, "Content-Length: 67108864") || !strings.Contains(head, "Accept-Ranges: bytes") {
		t.Errorf("HEAD: %v\n%s", err, head)
	}
	if _, err := r.curl("-f", "-o", r.out("part"), "-r", "1000-1999", url); err != nil {
		t.Error(err)
	}
	r.same(r.out("part"), data[1000:2000])

	// Broken off by the client, then resumed where it was.
	if out, err := r.curl("-f", "-o", r.out("all"), "--limit-rate", "4M", "--max-time", "1", url); err == nil {
		t.Errorf("curl was to give up: %s", out)
	}
	r.doors.WaitFor("ended http linux 10.78.1.10 ... /67108864 err=the machine closed the connection", 1)
	if out, err := r.curl("-f", "-o", r.out("all"), "-C", "-", url); err != nil {
		t.Errorf("resume: %v %s", err, out)
	}
	r.same(r.out("all"), data)
	r.doors.WaitFor("ended http linux 10.78.1.10 67108864/67108864 err=<nil>", 1)

	for _, path := range []string{
		"/../../etc/passwd", "/boot/../../../etc/passwd", "/boot/%2e%2e/%2e%2e/etc/passwd", "/boot/..%2f..%2fetc%2fpasswd",
		"/boot/..%5c..%5cetc", "/boot/" + bootID + "/artefact/../../../etc/passwd", "//etc/passwd", "/boot/ipxe.efi%00",
	} {
		got, err := r.curl("--path-as-is", "-w", "%{http_code} %{num_redirects} %{redirect_url}", bootBase+path)
		if err != nil || !strings.HasSuffix(got, "404 0 ") || strings.Contains(got, "root:") || !strings.Contains(got, "/boot/ask") {
			t.Errorf("%s: %v %s", path, err, got)
		}
	}
	snp, _ := loaders.Find("snponly.efi")
	for _, path := range []string{"//boot//snponly.efi", "/boot/" + bootID + "//snponly.efi"} {
		if got, err := r.curl("-f", "--path-as-is", "-H", "Host: 10.78.1.1:8080", "-o", r.out("slashes"), "-w", "%{http_code}", bootBase+path); err != nil || got != "200" {
			t.Errorf("%s: %v %s", path, err, got)
		}
		r.same(r.out("slashes"), snp.Data)
	}
	if got, err := r.curl("-f", "--http1.0", "-o", r.out("old"), "-w", "%{http_code}", bootBase+"/boot/snponly.efi"); err != nil || got != "200" {
		t.Errorf("HTTP/1.0: %v %s", err, got)
	}
	r.same(r.out("old"), snp.Data)

	if got, err := r.curl("-f", "--data-binary", "line one\nline two", bootBase+"/boot/"+bootID+"/report?step=failed&detail=no+disk"); err != nil || got != "reported\n" {
		t.Errorf("report: %v %q", err, got)
	}
	r.doors.WaitFor(`report `+bootID+` 10.78.1.10 failed "no disk" "line one\nline two"`, 1)
	if got, err := r.curl("-f", bootBase+"/boot/script?mac=52:54:00:aa:00:01"); err != nil || got != "#!ipxe\necho script  52:54:00:aa:00:01 10.78.1.10 "+bootBase+"\n" {
		t.Errorf("script: %v %q", err, got)
	}
}

func TestBootTFTPClients(t *testing.T) {
	r := newBootRack(newLab(t, "tftp", "atftp", "curl"), bootSetup{})
	loaders := loadersOfDebian(t)
	want, _ := loaders.Find("ipxe.efi")

	r.In(r.machine, "tftp", "-m", "binary", "10.78.1.1", "-c", "get", "ipxe.efi", r.out("hpa"))
	r.same(r.out("hpa"), want.Data)
	r.doors.WaitFor(fmt.Sprintf("ended tftp ipxe.efi 10.78.1.10 %d/%[1]d err=<nil>", len(want.Data)), 1)
	for _, option := range []string{"blksize 512", "blksize 1432", "blksize 1468", "blksize 65464", "tsize 0", "timeout 2"} {
		r.In(r.machine, "atftp", "--get", "--remote-file", "/ipxe.efi", "--local-file", r.out("atftp"), "--option", option, "10.78.1.1")
		r.same(r.out("atftp"), want.Data)
	}
	if _, err := r.curl("-f", "--tftp-blksize", "1024", "-o", r.out("curl"), "tftp://10.78.1.1/ipxe.efi"); err != nil {
		t.Errorf("curl: %v", err)
	}
	r.same(r.out("curl"), want.Data)

	for _, c := range []struct {
		what string
		args []string
		says string
	}{
		{"netascii, which would change the bytes", []string{"tftp", "-m", "netascii", "10.78.1.1", "-c", "get", "ipxe.efi", r.out("x")}, "octet mode only"},
		{"an unknown name", []string{"tftp", "-m", "binary", "10.78.1.1", "-c", "get", "pxeboot.n12", r.out("x")}, "no such boot file"},
		{"a path upwards", []string{"tftp", "-m", "binary", "10.78.1.1", "-c", "get", "../../../etc/passwd", r.out("x")}, "no such boot file"},
		{"an absolute path", []string{"tftp", "-m", "binary", "10.78.1.1", "-c", "get", "/etc/passwd", r.out("x")}, "no such boot file"},
		{"a backslash", []string{"tftp", "-m", "binary", "10.78.1.1", "-c", "get", `..\..\etc\passwd`, r.out("x")}, "no such boot file"},
		{"writing", []string{"tftp", "-m", "binary", "10.78.1.1", "-c", "put", "/etc/hostname", "ipxe.efi"}, "takes none"},
	} {
		start := time.Now()
		out, _ := r.Try(30*time.Second, "ip", append([]string{"netns", "exec", r.machine}, c.args...)...)
		if !strings.Contains(out, c.says) || strings.Contains(out, "/usr/lib") {
			t.Errorf("%s: %s", c.what, out)
		}
		if took := time.Since(start); took > 5*time.Second { // iPXE would wait 30 s where it gets no answer
			t.Errorf("%s: refused after %s", c.what, took)
		}
	}
	if got, err := os.ReadFile(r.out("x")); err == nil && len(got) > 0 {
		t.Errorf("a refused file has %d bytes", len(got))
	}
}

func TestBootFortyEightAtOnce(t *testing.T) {
	r := newBootRack(newLab(t, "curl", "atftp"), bootSetup{Admission: admission.Rules{Downloads: 64}})
	loaders := loadersOfDebian(t)
	data, url := r.artefact(8 << 20)
	snp, _ := loaders.Find("snponly.efi")
	const n = 48
	args := []string{"-f", "--parallel", "--parallel-immediate", "--parallel-max", strconv.Itoa(n)}
	for i := range n {
		args = append(args, "-o", r.out(fmt.Sprint("http", i)), strings.Replace(url, bootID, fmt.Sprintf("%032x", i), 1))
	}
	group, ctx := errgroup.WithContext(context.Background())
	group.Go(func() error {
		if out, err := r.curl(args...); err != nil {
			return fmt.Errorf("curl: %w %s", err, out)
		}
		return nil
	})
	for i := range n {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			out, err := r.Try(60*time.Second, "ip", "netns", "exec", r.machine, "atftp", "--get", "--remote-file", "snponly.efi",
				"--local-file", r.out(fmt.Sprint("tftp", i)), "--option", "blksize 1468", "10.78.1.1")
			if err != nil {
				return fmt.Errorf("atftp %d: %w %s", i, err, out)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r.same(r.out(fmt.Sprint("http", i)), data)
		r.same(r.out(fmt.Sprint("tftp", i)), snp.Data)
	}
	r.doors.WaitFor("ended http linux 10.78.1.10 8388608/8388608 err=<nil>", n)
	if strings.Contains(r.doors.Text(), "panicked") {
		t.Error(r.doors.Text())
	}
}

// iPXE waits as long as Retry-After says and asks again, and takes whole seconds only; curl --retry does the same.
func TestBootWaitsItsTurn(t *testing.T) {
	r := newBootRack(newLab(t, "curl"), bootSetup{Admission: admission.Rules{Downloads: 1, BytesPerSecond: 40 << 20}})
	data, url := r.artefact(40 << 20) // more than the buffers of both ends hold
	slow := r.Start(r.machine, nil, nil, "curl", "-sSf", "--limit-rate", "10M", "-o", r.out("slow"), "-w", "slow has it\n", url)
	r.doors.WaitFor("began http linux", 1)
	head, err := r.curl("-f", "-D", "-", "--retry", "20", "-o", r.out("next"), strings.Replace(url, bootID, strings.Repeat("f", 32), 1))
	if err != nil || !regexp.MustCompile(`(?s)503 Service Unavailable.*Retry-After: [1-9][0-9]*\r\n.*200 OK`).MatchString(head) {
		t.Errorf("%v\n%s", err, head)
	}
	r.same(r.out("next"), data)
	slow.WaitFor("slow has it", 1)
	r.same(r.out("slow"), data)
}

// Sendfile is what keeps a row of machines from costing us processor time; see httpboot's own test for how it is lost.
func TestBootSendfileReachesTheKernel(t *testing.T) {
	l := newLab(t, "curl", "strace")
	trace := filepath.Join(l.Dir, "trace")
	r := newBootRack(l, bootSetup{}, "strace", "-f", "-qq", "-e", "trace=sendfile", "-e", "signal=none", "-o", trace)
	data, url := r.artefact(64 << 20)
	if out, err := r.curl("-f", "-o", r.out("file"), url); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	r.same(r.out("file"), data)
	// strace passes no signal on: the traced process is stopped by itself, and strace ends with it.
	strace := r.doors.Cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", strace))
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	<-r.doors.Done
	r.doors.Done <- nil
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, m := range regexp.MustCompile(`(?m)sendfile.*\) += ([0-9]+)$`).FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.Atoi(m[1])
		sent += n
	}
	if sent < len(data)-512 {
		t.Errorf("the kernel sent %d of %d bytes by itself", sent, len(data))
	}
}

// A client that sends its header byte by byte holds a connection for five seconds and no longer; others are served.
func TestBootSlowRequests(t *testing.T) {
	r := newBootRack(newLab(t, "curl"), bootSetup{})
	loadersOfDebian(t)
	var slow []net.Conn
	r.Inside(r.machine, func() error {
		for range 60 {
			conn, err := net.Dial("tcp", "10.78.1.1:80")
			if err != nil {
				return err
			}
			slow = append(slow, conn)
			if _, err := io.WriteString(conn, "GET /boot/ask HTTP/1.1\r\nX"); err != nil {
				return err
			}
		}
		return nil
	})
	start := time.Now()
	if got, err := r.curl("-f", "--max-time", "5", "-o", r.out("snp"), "-w", "%{http_code}", bootBase+"/boot/snponly.efi"); err != nil || got != "200" {
		t.Errorf("beside slow clients: %v %s", err, got)
	}
	for i, conn := range slow {
		_ = conn.SetReadDeadline(start.Add(15 * time.Second))
		if _, err := bufio.NewReader(conn).ReadString('\n'); os.IsTimeout(err) {
			t.Fatalf("slow connection %d is still open after 15 s", i)
		}
		conn.Close()
	}
	if took := time.Since(start); took < 4*time.Second {
		t.Errorf("slow connections are closed after %s, which is hard on real machines", took)
	}
}
