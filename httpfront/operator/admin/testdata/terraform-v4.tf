terraform {
  required_providers {
    cloudflare = {
      source  = "cloudflare/cloudflare"
      version = "4.52.8"
    }
  }
}

provider "cloudflare" {
  api_hostname = "localhost:9080"   # or CLOUDFLARE_API_HOSTNAME
  api_token    = var.ropeline_token # or CLOUDFLARE_API_TOKEN
}

variable "ropeline_token" {
  sensitive = true
}

resource "cloudflare_waiting_room" "tickets" {
  zone_id              = "shop"
  name                 = "tickets"
  host                 = "tickets.example.com"
  total_active_users   = 500
  new_users_per_minute = 200
}

resource "cloudflare_waiting_room_event" "sale" {
  zone_id          = "shop"
  waiting_room_id  = cloudflare_waiting_room.tickets.id
  name             = "sale"
  event_start_time = "2030-11-29T10:00:00+01:00"
  event_end_time   = "2030-11-29T18:00:00+01:00"
}

resource "cloudflare_waiting_room_rules" "tickets" {
  zone_id         = "shop"
  waiting_room_id = cloudflare_waiting_room.tickets.id
  rules {
    action      = "bypass_waiting_room"
    expression  = "starts_with(http.request.uri.path, \"/static/\")"
    description = "pictures and styles"
    status      = "enabled"
  }
}

resource "cloudflare_waiting_room_settings" "shop" {
  zone_id                      = "shop"
  search_engine_crawler_bypass = true
}
