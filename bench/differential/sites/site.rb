# What WEBrick takes for the path of a servlet.
require "webrick"

quiet = WEBrick::Log.new(File::NULL)
server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: ARGV[0].to_i, Logger: quiet, AccessLog: [])

serve = lambda do |page|
  lambda do |req, res|
    host = req.host.to_s.downcase.chomp(".")
    shown = host == "a.example" ? page : "open"
    body = %w[POST PUT PATCH].include?(req.request_method) ? req.body.to_s.unpack1("H*") : "-"
    $stdout.syswrite("served\t#{shown}\t#{host}\t#{req["X-Id"]}\t#{body}\n")
    res.status = 200
  end
end
server.mount_proc("/tickets", serve.call("tickets"))
server.mount_proc("/", serve.call("open"))
server.start
