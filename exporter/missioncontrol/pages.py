"""Where the pages for people are."""

from typing import Final

from starlette.routing import Route

from exporter.missioncontrol.web import event, export, feed, health, page, session, sessions, waterfall

ROUTES: Final = (
    Route("/", sessions.sessions_page, methods=["GET"]),
    Route("/feed", feed.feed_page, methods=["GET"]),
    Route("/health", health.health_page, methods=["GET"]),
    Route("/sessions/{id}", session.session_page, methods=["GET"]),
    Route("/sessions/{id}/next", session.next_event, methods=["GET"]),
    Route("/sessions/{id}/event", event.event_page, methods=["GET"]),
    Route("/sessions/{id}/waterfall", waterfall.waterfall_page, methods=["GET"]),
    Route("/sessions/{id}/export.{form}", export.export, methods=["GET"]),
    Route("/style.css", page.style, methods=["GET"]),
    Route("/script.js", page.script, methods=["GET"]),
    Route("/icon.svg", page.icon, methods=["GET"]),
)
