package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/node/room"
)

// config is what `ropeline run` is told, by flags or by file, under the same
// names.
type config struct {
	Listen         string
	Admin          adminConfig
	TrustedProxies []netip.Prefix
	Edge           edgeConfig
	TLS            tlsConfig
	VerdictListen  string
	Proof          proofConfig
	Front          frontConfig

	Name       string
	Site       string
	Mesh       string
	Advertise  string
	Join       []string
	SecretFile string
	CertFile   string
	KeyFile    string
	CAFile     string
	DataDir    string
	Rights     rightsConfig
	Proxy      proxyConfig

	LogFormat string
	LogLevel  string
	Signals   signalsConfig
	Limits    limitsConfig

	Room  room.Settings   // what the flags say of the one room
	Rooms []room.Settings // what the file lists under "rooms"

	file   fileLines
	faults faults // for fault tests; nothing in other builds
}

// defaultConfig is a single node in front of one site.
func defaultConfig() config {
	var c config
	nodeFields.Start(&c)
	c.Name, c.Room = defaultName(), defaultRoom()
	return c
}

func defaultRoom() room.Settings {
	s := room.New()
	s.Name, s.TotalActiveUsers, s.NewUsersPerMinute = "default", 200, 200
	return s
}

func defaultName() string {
	var name string
	host, err := os.Hostname()
	if err != nil || nodeName.At(&name).Set(host) != nil {
		return "node"
	}
	return name
}

// serves says in the log what this node is for.
func (c *config) serves() slog.Attr {
	var attrs []any
	if len(c.Proxy.Origins.Servers) > 0 {
		attrs = append(attrs, slog.String("listen", c.Listen), slog.String("origin", c.Proxy.Origins.text()))
	}
	if c.VerdictListen != "" {
		attrs = append(attrs, slog.String("verdict_listen", c.VerdictListen))
	}
	return slog.Group("", attrs...)
}

// rooms returns the rooms to serve, with ids that every node derives alike from
// the rooms' names.
func (c *config) rooms() ([]room.Settings, error) {
	rooms := c.Rooms
	if len(rooms) == 0 {
		rooms = []room.Settings{c.Room}
	}
	out := make([]room.Settings, 0, len(rooms))
	var earlier earlierRooms
	for i, s := range rooms {
		if err := earlier.add(&rooms[i]); err != nil {
			return nil, fmt.Errorf("rooms: %w", err)
		}
		s.ID = roomID(s.Name)
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("room %q: %w", s.Name, err)
		}
		if err := httpfront.CheckRoom(&s, c.Front.Lists); err != nil {
			return nil, fmt.Errorf("room %q: %w", s.Name, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// earlierRooms are those that stand before another in a list. The zero value is none.
type earlierRooms struct {
	names      map[string]bool
	neighbours room.Neighbours
}

// add adds s, which is not to change any more. An error says that nobody could tell it apart from one of the others.
func (e *earlierRooms) add(s *room.Settings) error {
	err := e.neighbours.Apart(s)
	if e.names[s.Name] {
		err = fmt.Errorf("the name %q is used twice; every room needs its own", s.Name)
	}
	if e.names == nil {
		e.names = map[string]bool{}
	}
	e.names[s.Name] = true
	e.neighbours.Add(s) // also if it is refused: all mistakes are told at once
	return err
}

func roomID(name string) (id crdt.RoomID) {
	sum := sha256.Sum256([]byte("ropeline room\x00" + name))
	copy(id[:], sum[:])
	return id
}

// load reads the configuration file, if there is one, and refuses what cannot work. All
// mistakes are reported at once.
func (c *config) load(file string, fs *pflag.FlagSet) error {
	if file != "" {
		if err := readConfigFile(file, fs, c); err != nil {
			return together(err, c.check())
		}
	}
	return c.check()
}

// check refuses combinations that cannot work, before anything starts.
func (c *config) check() error {
	return errors.Join(c.checkProxy(), c.checkAdmin(), c.checkTLS(), c.checkPeers(), c.checkMesh(), c.checkRights(), c.checkSignals())
}

// checkPeers is about proxies in front.
func (c *config) checkPeers() error {
	var errs []error
	if c.VerdictListen != "" && len(c.TrustedProxies) == 0 {
		errs = append(errs, c.file.at("verdict-listen", errors.New("--verdict-listen needs --trusted-proxies: the addresses of the proxies that may ask, such as --trusted-proxies 127.0.0.1")))
	}
	if c.Front.CountryHeader != "" && len(c.TrustedProxies) == 0 {
		errs = append(errs, c.file.at("country-header", errors.New("--country-header needs --trusted-proxies: the addresses of the proxies that write it, such as --trusted-proxies 10.0.0.0/8; nobody else is believed")))
	}
	if c.Front.VerdictCountryHeader != "" && c.VerdictListen == "" {
		errs = append(errs, c.file.at("verdict-country-header", errors.New("--verdict-country-header needs --verdict-listen: it is about proxies that ask for verdicts; for those that this node is behind there is --country-header")))
	}
	if err := c.Proof.check(); err != nil {
		errs = append(errs, c.file.at("proof-issuer", err))
	}
	return errors.Join(errs...)
}

// checkMesh is about other nodes.
func (c *config) checkMesh() error {
	var errs []error
	if len(c.Join) > 0 && c.Mesh == "" {
		errs = append(errs, c.file.at("join", errors.New("--join needs --mesh: the UDP address on which other nodes reach this one, such as --mesh :7946")))
	}
	if c.Mesh != "" && c.SecretFile == "" {
		errs = append(errs, c.file.at("mesh", errors.New("--mesh needs --secret-file: make one with \"ropeline keygen --out secret.key\" and give the same file to every node")))
	}
	var given []string
	for name, value := range map[string]string{"cert-file": c.CertFile, "key-file": c.KeyFile, "ca-file": c.CAFile} {
		if value != "" {
			given = append(given, name)
		}
	}
	if len(given) == 1 || len(given) == 2 {
		errs = append(errs, c.file.at(slices.Min(given), errors.New("--cert-file, --key-file and --ca-file go together: give all three or none")))
	}
	return errors.Join(errs...)
}
