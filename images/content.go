package images

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/agent/write/qcow2"
	"slipway.dev/slipway/inventory"
)

// kind is what a file is by its content, whatever it is called.
type kind struct {
	name string // for people: "a VMDK disk of VMware"
	// format is how the agent unpacks it as a disk image, "" when it cannot.
	format string
	// way is what to do when a disk image is wanted, without the name of the file.
	way string
	// isNothing: it is no file of any image, whatever its role.
	isNothing bool
}

const (
	toQcow2  = "convert it first: qemu-img convert -O qcow2 OLD NEW.qcow2"
	unpackIt = "unpack it first, and import the disk image that is inside"
	isoWay   = "an installer's ISO is booted, not written: import its kernel and initrd with --kernel and --initrd, and the file itself with --iso"
	pageWay  = "open the address in a browser; it may want a login, or be the page about the file instead of the file"
)

var (
	aRaw   = kind{name: "a raw disk", format: "raw"}
	aQcow2 = kind{name: "a qcow2 disk", format: "qcow2"}
	aTar   = kind{name: "a tar archive", way: unpackIt + ": tar -xf FILE"}
	aISO   = kind{name: "an ISO", way: isoWay}
	aVHD   = kind{name: "a VHD disk of Hyper-V or Azure", way: toQcow2}
)

// magics are files that begin with, or have at an offset, bytes of their own. The first that fits counts.
var magics = []struct {
	at    int
	bytes string
	kind  kind
}{
	{0, "QFI\xfb", aQcow2},
	{0, "\x1f\x8b\x08", kind{name: "packed with gzip", format: "raw.gz"}},
	{0, "\xfd7zXZ\x00", kind{name: "packed with xz", format: "raw.xz"}},
	{0, "\x28\xb5\x2f\xfd", kind{name: "packed with zstd", format: "raw.zst"}},
	{0, "BZh", kind{name: "packed with bzip2", way: "unpack it first: bunzip2 FILE; gzip, xz and zstd need not be unpacked"}},
	{0, "\x04\x22\x4d\x18", kind{name: "packed with lz4", way: "unpack it first: unlz4 FILE; gzip, xz and zstd need not be unpacked"}},
	{0, "\x02\x21\x4c\x18", kind{name: "packed with lz4", way: "unpack it first: unlz4 FILE; gzip, xz and zstd need not be unpacked"}},
	{0, "\x89LZO\x00", kind{name: "packed with lzop", way: "unpack it first: lzop -d FILE"}},
	{0, "LZIP", kind{name: "packed with lzip", way: "unpack it first: lzip -d FILE"}},
	{0, "\x5d\x00\x00", kind{name: "packed with lzma", way: "unpack it first: unlzma FILE"}},
	{0, "PK\x03\x04", kind{name: "a zip archive", way: unpackIt + ": unzip FILE"}},
	{0, "7z\xbc\xaf\x27\x1c", kind{name: "a 7z archive", way: unpackIt + ": 7z x FILE"}},
	{0, "Rar!\x1a\x07", kind{name: "a rar archive", way: unpackIt}},
	{257, "ustar", aTar},
	{0, "KDMV", kind{name: "a VMDK disk of VMware", way: toQcow2}},
	{0, "COWD", kind{name: "a VMDK disk of VMware", way: toQcow2}},
	{0, "# Disk DescriptorFile", kind{name: "the description of a VMDK disk, without the disk", way: toQcow2 + ", with all its files in one folder"}},
	{0, "vhdxfile", kind{name: "a VHDX disk of Hyper-V", way: toQcow2}},
	{0, "conectix", aVHD},
	{64, "\x7f\x10\xda\xbe", kind{name: "a VDI disk of VirtualBox", way: toQcow2}},
	{0, "QED\x00", kind{name: "a QED disk", way: toQcow2}},
	{0, "WithoutFreeSpace", kind{name: "a Parallels disk", way: toQcow2}},
	{0, "WithouFreSpacExt", kind{name: "a Parallels disk", way: toQcow2}},
	{0, "\x3a\xff\x26\xed", kind{name: "an Android sparse image", way: "convert it first: simg2img OLD NEW.raw"}},
	{32769, "CD001", aISO},
	{32769, "BEA01", aISO},
	{0, "MSWIM\x00\x00\x00", kind{name: "a Windows WIM", way: "make a disk of it first; Slipway writes whole disks"}},
	{0, "hsqs", kind{name: "a squashfs", way: "it is a root file system, not a disk: import it with --rootfs, --kernel and --initrd"}},
	{0, "070701", kind{name: "an initrd", way: "import it with --initrd and --kernel"}},
	{0, "\x7fELF", kind{name: "a program", way: "a disk image is wanted here; a kernel is imported with --kernel"}},
	{0, "!<arch>\n", kind{name: "a Debian package", way: "install it on the server, and import with --from package"}},
	{0, "\xed\xab\xee\xdb", kind{name: "an RPM package", way: unpackIt + ": rpm2cpio FILE"}},
	{0, "version https://git-lfs.github.com/spec/", kind{name: "a pointer of Git LFS, not the file", way: "download the file itself: git lfs pull", isNothing: true}},
}

// notKernels are files that are no kernels by themselves.
var notKernels = []string{
	aISO.name, aTar.name, "an initrd", "a squashfs", "a zip archive", "a 7z archive", "a rar archive", "a Debian package", "an RPM package",
}

// headBytes is how much of a file tells what it is: an ISO tells it behind 32 KiB.
const headBytes = 36 << 10

// kindOf tells what a file is by its first bytes, up to headBytes, and its last 512. What nothing is known of may be a
// raw disk.
func kindOf(head, tail []byte) kind {
	for _, m := range magics {
		if len(head) >= m.at && bytes.HasPrefix(head[m.at:], []byte(m.bytes)) && (m.bytes != "BZh" || len(head) > 9 && string(head[4:10]) == "1AY&SY") {
			return m.kind
		}
	}
	switch text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head[:min(len(head), 1024)], []byte("\xef\xbb\xbf")), " \t\r\n")); {
	case bytes.HasPrefix(text, []byte("<!doctype html")), bytes.HasPrefix(text, []byte("<html")), bytes.HasPrefix(text, []byte("<head")),
		bytes.HasPrefix(text, []byte("<?xml")) && bytes.Contains(text, []byte("<html")), bytes.HasPrefix(text, []byte("<!--")):
		return kind{name: "a web page", way: pageWay, isNothing: true}
	case bytes.HasPrefix(text, []byte("<?xml")), bytes.HasPrefix(text, []byte("<error")), bytes.HasPrefix(text, []byte(`{"`)), bytes.HasPrefix(text, []byte("{\n")):
		return kind{name: "a text for programs (XML or JSON), such as the error of a file store", way: pageWay, isNothing: true}
	}
	// Nothing at the beginning of the file shows the next two formats. Written to a disk as raw they would even boot,
	// with the footer as garbage in the last sector.
	if bytes.HasPrefix(tail, []byte("conectix")) { // a VHD of fixed size is a raw disk with a footer
		return aVHD
	}
	if bytes.HasPrefix(tail, []byte("koly")) {
		return kind{name: "a disk image of macOS (DMG)", way: "convert it first: dmg2img OLD NEW.raw"}
	}
	return aRaw
}

// fits returns nil when a file may have a role in an image, and for a disk image its format.
func fits(role inventory.Role, name string, f io.ReaderAt, size int64) (format string, err error) {
	head, tail, err := ends(f, size)
	if err != nil {
		return "", err
	}
	if size == 0 {
		return "", inventory.Errorf(inventory.Invalid, "%s is empty", inventory.Clean(name, 120)).WithHint("fetch it again: its download may have failed")
	}
	k := kindOf(head, tail) // by content: the ends of names are often wrong
	is := fmt.Sprintf("%s is %s", inventory.Clean(name, 120), k.name)
	if k.isNothing {
		return "", inventory.Errorf(inventory.Invalid, "%s", is).WithHint("%s", k.way)
	}
	if role != inventory.RoleDisk {
		isDisk := k.format == "qcow2" || k.way == toQcow2 || k.name == aVHD.name
		if isDisk && role != inventory.RoleRootfs {
			return "", inventory.Errorf(inventory.Invalid, "%s, and no %s", is, role).WithHint("import a disk image with --disk")
		}
		// "HdrS" at 0x202 is the magic of the x86 boot protocol (Documentation/arch/x86/boot.rst of Linux).
		if role == inventory.RoleInitrd && len(head) > 0x206 && string(head[0x202:0x206]) == "HdrS" {
			return "", inventory.Errorf(inventory.Invalid, "%s is a kernel, and no initrd", inventory.Clean(name, 120)).WithHint("--kernel and --initrd may be swapped")
		}
		if role == inventory.RoleKernel && slices.Contains(notKernels, k.name) {
			return "", inventory.Errorf(inventory.Invalid, "%s, and no kernel", is).WithHint("where the kernel is a file inside, take it out, and import that")
		}
		return "", nil
	}
	if k.format == "" {
		return "", inventory.Errorf(inventory.Invalid, "%s, which our agent cannot write to a disk", is).WithHint("%s", k.way)
	}
	if k.format == "raw" && isText(head) {
		return "", inventory.Errorf(inventory.Invalid, "%s is a text, and no disk", inventory.Clean(name, 120)).WithHint("read it: it may be an error of its server")
	}
	if k.format == "qcow2" {
		return k.format, explainIf(checkQcow2(head, f, size), inventory.Clean(name, 120)+": ")
	}
	return k.format, checkPacked(k.format, inventory.Clean(name, 120), f, size)
}

// isText reports whether the first bytes of a file are a text, such as "404: Not Found".
func isText(head []byte) bool {
	for n := 0; len(head) == headBytes-n && n < utf8.UTFMax-1 && !utf8.Valid(head); n++ { // a letter may be cut in two
		head = head[:len(head)-1]
	}
	isControl := func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r\f\x1b", r) || r == 0x7f }
	return len(head) > 0 && utf8.Valid(head) && bytes.IndexFunc(head, isControl) < 0
}

// ends reads what tells the kind of a file.
func ends(f io.ReaderAt, size int64) (head, tail []byte, err error) {
	head, tail = make([]byte, min(size, headBytes)), make([]byte, min(size, 512))
	if _, err = f.ReadAt(head, 0); err == nil || err == io.EOF {
		_, err = f.ReadAt(tail, size-int64(len(tail)))
	}
	if err != nil && err != io.EOF {
		return nil, nil, DiskError("read the file", err)
	}
	return head, tail, nil
}

// checkQcow2 refuses what our agent would refuse when a machine waits for it.
// It reads the cluster map with the agent's own code, so that both always agree on what can be written. Backing
// files, encryption and unknown features fail here, at the import, and not on a host whose old system is already
// gone.
func checkQcow2(head []byte, f io.ReaderAt, size int64) error {
	h, err := qcow2.ParseHeader(head[:min(len(head), qcow2.HeaderBytes)])
	if err != nil {
		return err
	}
	_, err = qcow2.ReadMap(h, size, func(off, n int64) ([]byte, error) {
		b := make([]byte, n)
		read, err := f.ReadAt(b, off)
		if err == io.EOF {
			err = nil
		}
		return b[:read], err // ReadMap refuses a short table
	})
	return err
}

// checkPacked looks at what is packed: only a raw disk is unpacked on its way to a disk.
func checkPacked(format, name string, f io.ReaderAt, size int64) error {
	if format == "raw" {
		return nil
	}
	in := io.NewSectionReader(f, 0, size)
	var out io.Reader
	var err error
	switch format {
	case "raw.gz":
		out, err = gzip.NewReader(in)
	case "raw.xz":
		out, err = xz.NewReader(in)
	case "raw.zst":
		if err := checkWindow(name, in); err != nil {
			return err
		}
		var z *zstd.Decoder
		// The bound of the window is the agent's: a frame may ask for gigabytes of memory (RFC 8878 section
		// 3.1.1.1.2).
		if z, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(wire.MaxZstdWindow)); err == nil {
			defer z.Close()
			out = z
		}
	}
	head := make([]byte, headBytes)
	n := 0
	if err == nil {
		if n, err = io.ReadFull(out, head); err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil
		}
	}
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "%s cannot be unpacked as %s: %v", name, strings.TrimPrefix(format, "raw."), err).
			WithHint("it may be damaged; compare its checksum, or import it again")
	}
	inside := kindOf(head[:n], nil)
	if inside.format == "raw" {
		return nil
	}
	way := cmp.Or(inside.way, "unpack it first, and import what comes out")
	return inventory.Errorf(inventory.Invalid, "%s is packed, and inside is %s, which our agent cannot write to a disk", name, inside.article()).WithHint("%s", way)
}

// article is the name as it stands behind "inside is".
func (k kind) article() string {
	if rest, ok := strings.CutPrefix(k.name, "packed with "); ok {
		return "a file packed with " + rest
	}
	return k.name
}

// checkWindow refuses zstd that needs more memory than our agent gives it, such as that of zstd --long=31.
func checkWindow(name string, in *io.SectionReader) error {
	first := make([]byte, zstd.HeaderMaxSize)
	n, err := in.ReadAt(first, 0)
	if err != nil && err != io.EOF {
		return DiskError("read the file", err)
	}
	var h zstd.Header
	if err := h.Decode(first[:n]); err != nil {
		return inventory.Errorf(inventory.Invalid, "%s cannot be unpacked as zst: %v", name, err).WithHint("it may be damaged; compare its checksum, or import it again")
	}
	// A frame of a single segment has no window descriptor: the decoder needs memory for the whole content (RFC 8878
	// section 3.1.1.1.1.2).
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	if window > wire.MaxZstdWindow {
		return inventory.Errorf(inventory.Invalid, "%s is packed with a zstd window of %s; our agent unpacks with at most %s", name, FormatBytes(int64(window)), FormatBytes(wire.MaxZstdWindow)).
			WithHint("pack it again: zstd -d FILE, then zstd -19 without --long, or with --long=27")
	}
	return nil
}

func explainIf(err error, words string) error {
	if err == nil {
		return nil
	}
	return explain(err, words)
}

// fit checks every file of an image by its content, and settles how its disk image is packed.
func (c *Cache) fit(ctx context.Context, p *plan) error {
	for _, file := range p.image.Files {
		f, a, err := c.Open(file.Digest)
		if err != nil {
			return err
		}
		format, err := fitFile(ctx, p, file, f, a.SizeBytes)
		if err != nil {
			return err
		}
		if file.Role != inventory.RoleDisk {
			continue
		}
		if !p.isFormatGuessed && p.image.DiskFormat != format {
			return inventory.Errorf(inventory.Invalid, "%s is %s by its content, and not %s", file.Name, format, p.image.DiskFormat).
				WithHint("leave --disk-format out, or give it as %s", format)
		}
		p.image.DiskFormat = format
	}
	return nil
}

func fitFile(ctx context.Context, p *plan, file inventory.ImageArtefact, f *os.File, size int64) (string, error) {
	defer f.Close()
	format, err := fits(file.Role, file.Name, f, size)
	if err == nil && file.Role == inventory.RoleDisk {
		err = p.settleSize(ctx, inventory.Clean(file.Name, 120), format, f, size)
	}
	return format, err
}
