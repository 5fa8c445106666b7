package main

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/cmd/ropeline/operate"
	"github.com/ropeline/ropeline/httpfront/server"
	"github.com/ropeline/ropeline/node/room"
)

// config is what `ropeline run` is told, by flags or by file, under the same
// names.
type config struct {
	server.Config // Rooms are those that the file lists

	LogFormat string
	LogLevel  string

	Room room.Settings // what the flags say of the one room

	file    fileLines
	origins string // under which name the file has the origins of all
	faults  faults // for fault tests; nothing in other builds
}

// defaultConfig is a single node in front of one site, as the environment has it.
func defaultConfig() config {
	var c config
	nodeFields.Start(&c)
	c.Name, c.Room = defaultName(), defaultRoom()
	c.Admin.Token = os.Getenv(tokenVariable)
	c.Signals.OTLPFromEnv = os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	return c
}

// tokenVariable is where a token may stand, so that no file is needed.
const tokenVariable = operate.TokenVariable

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

// server returns what a server is told. A zero among flags means none where it means a default
// there.
func (c *config) server() server.Config {
	to := c.Config
	if len(to.Rooms) == 0 {
		to.Rooms = []room.Settings{c.Room}
	}
	if to.Proxy.Retries == 0 {
		to.Proxy.Retries = -1
	}
	if to.Proxy.Limits.BodyRate == 0 {
		to.Proxy.Limits.BodyRate = -1
	}
	to.Seams = c.faults.seams()
	return to
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
	var errs []error
	for _, err := range flatten(c.Check()) {
		if e, ok := errors.AsType[*server.SettingError](err); ok {
			err = c.file.at(c.nameInFile(e.Setting), e)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// nameInFile returns under which name the file has a setting.
func (c *config) nameInFile(setting string) string {
	if index, ok := strings.CutPrefix(setting, "origin"); ok && (index == "" || index[0] == '[') {
		setting = cmp.Or(c.origins, "origin") + index
	}
	whole := strings.TrimRight(strings.TrimSuffix(setting, "]"), "0123456789")
	if list, ok := strings.CutSuffix(whole, "["); ok && c.file.lines[setting] == (position{}) {
		return list // an element of a list has a line of its own where it stands alone
	}
	return setting
}
