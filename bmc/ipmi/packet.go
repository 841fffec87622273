package ipmi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"slices"
)

// Payload types of RMCP+ (IPMI 2.0, table 13-16).
const (
	payloadIPMI         = 0x00
	payloadSOL          = 0x01
	payloadOpenRequest  = 0x10
	payloadOpenResponse = 0x11
	payloadRAKP1        = 0x12
	payloadRAKP2        = 0x13
	payloadRAKP3        = 0x14
	payloadRAKP4        = 0x15

	flagEncrypted     = 0x80
	flagAuthenticated = 0x40
	formatRMCPPlus    = 0x06
)

// maxPacket bounds what is read from the network: IPMI's own limit for a payload is far below one Ethernet frame.
const maxPacket = 1500

var errPacket = errors.New("not an RMCP+ packet of this session")

// suite is a cipher suite that authenticates, signs and encrypts; weaker ones are not offered at all.
type suite struct {
	id              int
	auth, integrity byte
	newHash         func() hash.Hash
	codeN           int // bytes of an integrity code
}

// suites are the cipher suites of this driver. 17 is HMAC-SHA256, and 3 is HMAC-SHA1, the only one that IPMI 2.0
// demands of every controller. Both encrypt with AES-CBC-128. Suite 0 logs in without a password, and 1 and 2 do not
// encrypt: the driver does not know them at all.
var suites = map[int]suite{
	17: {id: 17, auth: 3, integrity: 4, newHash: sha256.New, codeN: 16},
	3:  {id: 3, auth: 1, integrity: 1, newHash: sha1.New, codeN: 12},
}

func (s suite) mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(s.newHash, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// keys protect the packets of one session: k1 signs, and the first 16 bytes of k2 encrypt.
type keys struct {
	suite
	k1, k2 []byte
}

// newKeys derives both keys from the session integrity key (IPMI 2.0, 13.32). The constants are 20 bytes for every
// hash.
func newKeys(s suite, sik []byte) keys {
	return keys{suite: s, k1: s.mac(sik, slices.Repeat([]byte{1}, 20)), k2: s.mac(sik, slices.Repeat([]byte{2}, 20))}
}

// rmcpHeader says RMCP 1.0, no acknowledgement wanted, class IPMI.
var rmcpHeader = []byte{0x06, 0x00, 0xff, 0x07}

// plain builds a packet outside of any session.
func plain(payload byte, body []byte) []byte {
	return append(header(payload, 0, 0, len(body)), body...)
}

func header(payload byte, session, seq uint32, n int) []byte {
	p := append(slices.Clone(rmcpHeader), formatRMCPPlus, payload)
	p = binary.LittleEndian.AppendUint32(p, session)
	p = binary.LittleEndian.AppendUint32(p, seq)
	return binary.LittleEndian.AppendUint16(p, uint16(n))
}

// seal builds a packet that only the other end of the session can read (IPMI 2.0, 13.28.4 and 13.29). It encrypts the
// text with its padding first. The code then covers the header and the encrypted text.
func (k keys) seal(payload byte, session, seq uint32, body []byte) []byte {
	// The padding is 1, 2, 3 and so on, and its length in one byte closes the block.
	padN := (aes.BlockSize - (len(body)+1)%aes.BlockSize) % aes.BlockSize
	text := slices.Clone(body)
	for i := range padN {
		text = append(text, byte(i+1))
	}
	text = append(text, byte(padN))
	sealed := make([]byte, aes.BlockSize+len(text))
	rand.Read(sealed[:aes.BlockSize])
	block, err := aes.NewCipher(k.k2[:16])
	if err != nil {
		panic(err) // sixteen bytes are always a key
	}
	cipher.NewCBCEncrypter(block, sealed[:aes.BlockSize]).CryptBlocks(sealed[aes.BlockSize:], text)

	p := append(header(payload|flagEncrypted|flagAuthenticated, session, seq, len(sealed)), sealed...)
	// The signed part is a multiple of four bytes: padding of 0xff, its length, and the constant 0x07.
	pad := (4 - (len(p)-len(rmcpHeader)+2)%4) % 4
	p = append(p, slices.Repeat([]byte{0xff}, pad)...)
	p = append(p, byte(pad), 0x07)
	return append(p, k.mac(k.k1, p[len(rmcpHeader):])[:k.codeN]...)
}

// packet is an answer before its contents were checked.
type packet struct {
	payload                  byte // without its flags
	encrypted, authenticated bool
	session                  uint32
	body                     []byte
	signed                   []byte // what the integrity code covers
	code                     []byte
}

// parsePacket takes an RMCP+ packet apart and trusts none of its lengths. codeN is the length of an integrity code.
// The slices in the result alias b.
func parsePacket(b []byte, codeN int) (packet, error) {
	const headN = 16
	if len(b) < headN || b[0] != rmcpHeader[0] || b[3]&0x1f != 0x07 || b[4] != formatRMCPPlus {
		return packet{}, errPacket
	}
	p := packet{
		payload: b[5] & 0x3f, encrypted: b[5]&flagEncrypted != 0, authenticated: b[5]&flagAuthenticated != 0,
		session: binary.LittleEndian.Uint32(b[6:]),
	}
	n := int(binary.LittleEndian.Uint16(b[14:]))
	if headN+n > len(b) {
		return packet{}, errPacket
	}
	p.body = b[headN : headN+n]
	if !p.authenticated {
		return p, nil
	}
	if len(b) < headN+n+2+codeN {
		return packet{}, errPacket
	}
	// The code is at the end of the datagram, behind whatever padding the controller uses.
	p.signed, p.code = b[4:len(b)-codeN], b[len(b)-codeN:]
	return p, nil
}

// open checks and decrypts a packet of a session. Every packet must be signed and encrypted. Otherwise a machine on
// the way could tell us that a host is off, and the fence would count as done.
func (k keys) open(b []byte, session uint32) (payload byte, body []byte, err error) {
	p, err := parsePacket(b, k.codeN)
	if err != nil {
		return 0, nil, err
	}
	if p.session != session || !p.authenticated || !p.encrypted {
		return 0, nil, errPacket
	}
	if !hmac.Equal(p.code, k.mac(k.k1, p.signed)[:k.codeN]) {
		return 0, nil, errPacket
	}
	if len(p.body) < 2*aes.BlockSize || len(p.body)%aes.BlockSize != 0 {
		return 0, nil, errPacket
	}
	block, err := aes.NewCipher(k.k2[:16])
	if err != nil {
		return 0, nil, err
	}
	text := make([]byte, len(p.body)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, p.body[:aes.BlockSize]).CryptBlocks(text, p.body[aes.BlockSize:])
	// The text is authentic here, so that wrong padding is a fault of the firmware and no oracle for an attacker.
	padN := int(text[len(text)-1])
	if padN >= len(text) {
		return 0, nil, errPacket
	}
	return p.payload, text[:len(text)-1-padN], nil
}

// Addresses on the bus inside the controller (IPMI 2.0, 5.5): its own, and that of software far away.
const (
	addrBMC     = 0x20
	addrConsole = 0x81
)

// request builds an IPMI message. rqSeq is the number, of six bits, that its answer will carry.
func request(netFn, cmd, rqSeq byte, data []byte) []byte {
	// Two checksums: one for the addresses, one for the rest. They are from the bus inside the controller, and
	// protect nothing.
	m := []byte{addrBMC, netFn << 2, 0, addrConsole, rqSeq << 2, cmd}
	m[2] = checksum(m[:2])
	m = append(m, data...)
	return append(m, checksum(m[3:]))
}

func checksum(b []byte) (sum byte) {
	for _, c := range b {
		sum += c
	}
	return -sum
}

// response takes an IPMI message apart when it answers the request.
func response(m []byte, netFn, cmd, rqSeq byte) (code byte, data []byte, ok bool) {
	if len(m) < 8 || checksum(m[:2]) != m[2] || checksum(m[3:len(m)-1]) != m[len(m)-1] {
		return 0, nil, false
	}
	if m[1]>>2 != netFn|1 || m[4]>>2 != rqSeq || m[5] != cmd {
		return 0, nil, false
	}
	return m[6], m[7 : len(m)-1], true
}
